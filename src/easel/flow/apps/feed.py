"""feed: examples come in for good, validated, each once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from easel.declare.counted import counted
from easel.declare.parse import parse_program
from easel.declare.program import ROLES, Program
from easel.declare.styles import StyleBook, Styles, joined, of_columns, read_styles, restyle, styles_json
from easel.errors import InvalidInput
from easel.flow.apps.files import AppFiles
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import Lake
from easel.match.canonical import example_digest, near_key
from easel.match.checks import check_columns, uneven_classes
from easel.match.encode.images import compact_example
from easel.match.examples import Example, ExampleError
from easel.match.pictures import LARGEST_SIDE
from easel.match.raw import Files, Picture, open_value, preview
from easel.match.read import read_example
from easel.match.remarks import WordCounts, answer_of, lonely_classes
from easel.match.roles import marked_value, only_value
from easel.match.split import assign_folds
from easel.match.stored import StoredPair, digest_of, write_lines
from easel.match.summary import stratum_of, summarise
from easel.records.app import App, Fed, Refused
from easel.records.identity import Caller
from easel.store import app_examples, apps
from easel.store.app_examples import NewExample
from easel.store.engine import Tx
from easel.store.upsert import lock

MOST_AT_ONCE = 50_000
MOST_REFUSALS = 100
MOST_NOTES = 20
SUMMED_UP = 500
AT_ONCE, BYTES_AT_ONCE = 500, 32 * 2**20


@dataclass(frozen=True, slots=True)
class _Read:
    """A pair that fits its program. Of the first few the typed record is kept, for the summary."""

    digest: str
    input: Any
    output: Any
    layer: str
    near: str | None
    example: Example | None
    marked: str = ""
    """The value of its column that is marked as group or as time."""
    answer: str = ""
    """The numbers to predict."""


def feed(
    lake: Lake,
    caller: Caller,
    name: str,
    pairs: Sequence[tuple[Any, Any]],
    *,
    skip_bad: bool = False,
    files: Files | None = None,
    styles: Styles | None = None,
    first_number: int = 1,
) -> Fed:
    """Validate every pair, leave out those fed before, store the rest in the lake, then name them.

    All or nothing: one wrong pair refuses the whole call, unless `skip_bad` leaves out the wrong ones and
    lists them. A call that is repeated adds nothing twice. Bytes are in the lake before any row names them.
    `styles`: how the file that these pairs are from writes numbers and dates, as far as it told. `first_number`: the
    place of the first pair in a feed that comes in parts.
    """
    if len(pairs) > MOST_AT_ONCE:
        raise InvalidInput(f"at most {MOST_AT_ONCE:,} pairs at once; feed {len(pairs):,} in several calls")
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        first = app_examples.count(tx, app.id) == 0
    program = parse_program(app.program)
    book = StyleBook(joined(read_styles(app.styles), of_columns(program, styles or {})))
    pairs = _in_plain_form(program, pairs, book)

    def known(digests: list[str]) -> set[str]:
        with lake.store.read() as tx:
            return app_examples.known(tx, app.id, digests)

    fresh, refused, remarks = _check(
        program,
        pairs,
        files or AppFiles(lake, caller, app),
        None if first else known,
        skip_bad=skip_bad,
        first_number=first_number,
    )
    fine = len(pairs) - len(refused)
    with lake.store.read() as tx:
        layers, near = [one.layer for one in fresh], [one.near for one in fresh]
        homes = app_examples.folds_near(tx, app.id, [key for key in near if key is not None])
        folds = assign_folds(layers, app_examples.fold_counts(tx, app.id), near, homes)
        total = app_examples.count(tx, app.id)
    if not fresh:
        return Fed(0, fine, total, refused[:MOST_REFUSALS])
    stored = [
        StoredPair(one.digest, fold, one.input, one.output) for one, fold in zip(fresh, folds, strict=True)
    ]
    lines = write_lines(stored)
    shard, reference = _into_the_lake(lake, caller, app, f"{stored[0].digest}.jsonl", lines)
    starts = accumulate((len(line) for line in lines), initial=0)
    rows = [
        NewExample(
            pair.digest,
            one.layer,
            pair.fold,
            preview(pair.input),
            preview(pair.output),
            shard,
            at,
            len(line),
            one.near,
        )
        for pair, one, at, line in zip(stored, fresh, starts, lines, strict=False)
    ]
    with lake.store.write() as tx:
        added = _name(tx, caller, app, rows, reference, fresh, program)
        apps.add_styles(tx, apps.find(tx, caller.project_id, app.id), styles_json(book.known))
        total = app_examples.count(tx, app.id)
        spread = app_examples.fold_counts(tx, app.id)
    return Fed(
        added, fine - added, total, refused[:MOST_REFUSALS], _notes(program, fresh, homes, spread, remarks)
    )


def _in_plain_form(
    program: Program, pairs: Sequence[tuple[Any, Any]], book: StyleBook
) -> Sequence[tuple[Any, Any]]:
    """The pairs with numbers and dates read as the app's columns write them."""
    book.look(program.input, "input", [source for source, _ in pairs])
    book.look(program.output, "output", [target for _, target in pairs])
    if not book.known:
        return pairs
    return [
        (
            restyle(program.input, "input", source, book.known),
            restyle(program.output, "output", target, book.known),
        )
        for source, target in pairs
    ]


def _notes(
    program: Program,
    fresh: Sequence[_Read],
    homes: Mapping[str, Sequence[int]],
    spread: Counter[tuple[str, int]],
    remarks: Sequence[str],
) -> tuple[str, ...]:
    """What a look at this feed tells at once; `easel checks` looks at everything."""
    kept = [one for one in fresh if one.example is not None]
    found = check_columns(program, [one.example for one in kept if one.example], [one.digest for one in kept])
    told = [one.told for one in found if one.kind != "imbalance"]
    classes: Counter[str] = Counter()
    for (stratum, _), count in spread.items():
        classes[stratum] += count
    told += [one.told for one in uneven_classes(classes)]
    told = [*remarks, *lonely_classes(classes), *told]
    keys = Counter(one.near for one in fresh if one.near is not None)
    again = sum(count - (key not in homes) for key, count in keys.items())
    if again:
        told.append(f"{again:,} of {counted(len(fresh), 'new example')} nearly the same as another one")
    return tuple(told[:MOST_NOTES])


def _check(
    program: Program,
    pairs: Sequence[tuple[Any, Any]],
    files: Files,
    known: Callable[[list[str]], set[str]] | None,
    *,
    skip_bad: bool,
    first_number: int,
) -> tuple[list[_Read], tuple[Refused, ...], list[str]]:
    """The pairs that are new, each once, those that do not fit, and remarks. What was fed before was checked then;
    where `known` is None nothing was.
    """
    read: list[_Read] = []
    refused: list[Refused] = []
    seen: set[str] = set()
    mine: set[str] = set()
    doubled = 0
    layer_of = stratum_of(program)
    counts, answer = WordCounts(program), answer_of(program)
    marks = any(program.column_of(role) is not None for role in ROLES)

    def refuse(number: int, error: ExampleError) -> None:
        place = number + first_number - 1
        if not skip_bad:
            raise ExampleError(f"pair {place}: {error.message}", pair=place) from None
        source = pairs[number - 1][0]
        named = source.get("$file") if isinstance(source, dict) else None
        refused.append(Refused(place, error.message, named))

    for opened in _opened(program, pairs, files, refuse, formerly=known is not None):
        # Releases before 0.2 named an example by what was sent, not by what it means.
        if known is not None:
            seen |= known([name for one in opened for name in (one.digest, one.former)])
        for number, digest, former, source, target in opened:
            if digest in seen or (former and former in seen):
                doubled += digest in mine
                continue
            try:
                example = read_example(program, source, target)
            except ExampleError as error:
                refuse(number, error)
                continue
            seen |= {digest, former}
            mine.add(digest)
            layer = layer_of(example)
            kept = compact_example(example, LARGEST_SIDE) if len(read) < SUMMED_UP else None
            near, marked = near_key(example), marked_value(program, example) if marks else ""
            counts.add(example)
            named = _Read(digest, _light(source), _light(target), layer, near, kept, marked, answer(example))
            read.append(named)
    again = (
        [f"{doubled:,} of them repeat another one of this feed: each example counts once"] if doubled else []
    )
    return read, tuple(refused), [*again, *counts.remarks()]


class _Opened(NamedTuple):
    """A pair whose files were read; `former`: its digest in releases before 0.2, where that may matter."""

    number: int
    digest: str
    former: str
    input: Any
    output: Any


def _opened(
    program: Program,
    pairs: Sequence[tuple[Any, Any]],
    files: Files,
    refuse: Callable[[int, ExampleError], None],
    *,
    formerly: bool,
) -> Iterator[list[_Opened]]:
    """The pairs that can be opened and fit the program, a few megabytes of pictures at a time."""
    batch: list[_Opened] = []
    held = 0
    for number, (source, target) in enumerate(pairs, start=1):
        try:
            one = open_value(source, files), open_value(target, files)
            former = digest_of(*one) if formerly else ""
            batch.append(_Opened(number, example_digest(program, *one), former, *one))
            held += sum(len(value.data) for value in one if isinstance(value, Picture))
        except ExampleError as error:
            refuse(number, error)
        except RecursionError:
            refuse(number, ExampleError("it is nested too deeply"))
        if len(batch) == AT_ONCE or held > BYTES_AT_ONCE:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _light(value: Any) -> Any:
    """A picture that lies in the lake need not stay in memory once it was checked."""
    if isinstance(value, Picture) and value.path is not None:
        return Picture(b"", value.fit, value.path)
    return value


def _name(
    tx: Tx,
    caller: Caller,
    app: App,
    rows: Sequence[NewExample],
    reference: str,
    read: Sequence[_Read],
    program: Program,
) -> int:
    """Rows for what is new. Another feed may have been quicker with the same pairs: its rows stand."""
    lock(tx, f"app {app.id}")
    newest = apps.find(tx, caller.project_id, app.id).examples_set or ""
    late = app_examples.known(tx, app.id, [row.digest for row in rows])
    new = [row for row in rows if row.digest not in late]
    if not new:
        return 0
    # Of two feeds at once the later version holds the files of both, whichever is noted last.
    latest = max(reference, newest, key=_version)
    app_examples.add(tx, app.id, new, latest, _summary(tx, app, program, read, len(new)))
    body = {"new": len(new), "set": reference}
    tx.emit("app.fed", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return len(new)


def _summary(tx: Tx, app: App, program: Program, read: Sequence[_Read], new: int) -> dict[str, Any]:
    """Shapes and scales of this feed, with the counts of all of them."""
    counts = app_examples.fold_counts(tx, app.id)
    now = summarise(program, [one.example for one in read if one.example is not None])
    classes = {stratum for stratum, _ in counts} | {one.layer for one in read}
    total = sum(counts.values()) + new
    told = app.summary or {}
    only, answer = (
        only_value(str(told.get(name, "")) if total > new else None, values)
        for name, values in (("only", {one.marked for one in read}), ("answer", {one.answer for one in read}))
    )
    return asdict(
        replace(now, examples=total, classes=len(classes) if now.classes else 0, only=only, answer=answer)
    )


def _version(reference: str) -> int:
    return int(reference.rpartition(":")[2] or 0)


def _into_the_lake(
    lake: Lake, caller: Caller, app: App, name: str, lines: Sequence[bytes]
) -> tuple[str, str]:
    """The shard's path, and the next version of the app's examples: the files of all feeds and this one's."""
    with tempfile.TemporaryDirectory() as here:
        (Path(here) / name).write_bytes(b"".join(lines))
        session = ingest_folder(lake, caller, Path(here), app.folder)
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
    made = create_file_set(lake.store, caller, f"{app.name}-examples", [app.folder])
    return f"{app.folder}{name}", str(made)

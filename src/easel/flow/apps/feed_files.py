"""feed from files of the lake: folders of pictures, arrays, CSV, Parquet, JSON lines.

The client uploads like any other upload, resumable and deduplicated; then one call names what was uploaded.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from zipfile import ZipFile

import numpy as np

from easel.declare.broken_files import BROKEN_ARRAY
from easel.declare.csv_table import read_table_file
from easel.declare.example_file import given_name, home_of
from easel.declare.pairs import pairs_of_rows
from easel.declare.parse import parse_program
from easel.declare.program import Program, Tensor
from easel.declare.propose import PICTURES
from easel.declare.styles import StyleBook, read_styles
from easel.errors import Conflict, InvalidInput
from easel.flow.apps.feed import MOST_NOTES, MOST_REFUSALS, feed
from easel.flow.apps.files import AppFiles, bring_home
from easel.flow.apps.parquet import read_parquet
from easel.flow.lake import browse, upload
from easel.flow.lake.upload import Lake
from easel.lake.manifest.node import Entry
from easel.records.app import App, Fed
from easel.records.identity import Caller
from easel.records.lake import UploadState
from easel.store import apps
from easel.store.engine import Tx

UPLOAD = "upload:"
MOST_FILES = 200_000
PATIENCE = timedelta(seconds=20)
"""How long an app waits for the next part of a feed: somebody whose machine went down keeps nobody waiting."""
BATCH_FILES, BATCH_BYTES = 10_000, 128 * 2**20
BATCH_ROWS = 20_000
LARGEST_TABLE = 2**30
INPUTS = ("x", "input", "inputs", "data", "images")
OUTPUTS = ("y", "output", "outputs", "target", "targets", "label", "labels")


def feed_files(
    lake: Lake,
    caller: Caller,
    name: str,
    reference: str,
    *,
    fit: str = "stretch",
    skip_bad: bool = False,
    more: bool = False,
) -> Fed:
    """All that `reference` names: `/photos/`, `/@photos:3`, `/apps/…/data.npz`, or `upload:upl_…`, what an upload
    brought. Where `more` is about to follow, nothing is learned before it is there.

    Pictures: the folder that a picture lies in is its class; for a program that makes pictures, files of the
    same name below `input/` and `output/` are a pair. Arrays: an npz file with `x` and `y`, or the files
    `x.npy` and `y.npy`.
    """
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        entries = files_of(tx, caller, reference)
    if more:
        with lake.store.write() as tx:
            apps.expect_more(tx, app.id, tx.now + PATIENCE)
    try:
        return _feed_entries(lake, caller, app, entries, reference, fit=fit, skip_bad=skip_bad)
    finally:
        if app.more_until is not None and not more:
            with lake.store.write() as tx:
                apps.expect_more(tx, app.id, None)


def _feed_entries(
    lake: Lake,
    caller: Caller,
    app: App,
    entries: Sequence[Entry],
    reference: str,
    *,
    fit: str,
    skip_bad: bool,
) -> Fed:
    pictures = [entry for entry in entries if entry.path.lower().endswith(PICTURES)]
    if pictures:
        return _feed_pictures(lake, caller, app, pictures, fit, skip_bad=skip_bad)
    program = parse_program(app.program)
    total = Fed(0, 0, 0)
    count = 0
    book = StyleBook(read_styles(app.styles))
    for batch in _batches(_tables(lake, caller, app, program, entries, book)):
        fed = feed(lake, caller, app.id, batch, skip_bad=skip_bad, styles=book.known, first_number=count + 1)
        count += len(batch)
        total = _sum(total, fed)
    total = _sum(total, Fed(0, 0, total.total, notes=tuple(book.notes)))
    if not count:
        raise InvalidInput(
            f"{reference} holds nothing to feed: pictures, .npz, x.npy with y.npy, .csv, .xlsx, .parquet, .jsonl"
        )
    return total


def files_of(tx: Tx, caller: Caller, reference: str) -> list[Entry]:
    """Every file that a path, a folder, a file set or a committed upload names."""
    if reference.startswith(UPLOAD):
        session = upload.get(tx, caller, reference.removeprefix(UPLOAD))
        if session.state is not UploadState.COMMITTED:
            raise Conflict(f"the upload is {session.state}: commit it first")
        return list(upload.added(tx, session))
    entries: list[Entry] = []
    after = ""
    while True:
        listing = browse.list_files(
            tx, caller, reference, recursive=True, limit=browse.MAX_LIMIT, after=after, whole=True
        )
        entries += [item for item in listing.items if isinstance(item, Entry)]
        if listing.next_cursor is None:
            return entries
        if len(entries) > MOST_FILES:
            raise InvalidInput(f"more than {MOST_FILES:,} files at once: feed folder by folder")
        after = listing.next_cursor


def _feed_pictures(
    lake: Lake, caller: Caller, app: App, entries: Sequence[Entry], fit: str, *, skip_bad: bool
) -> Fed:
    program = parse_program(app.program)
    ours = _brought_home(lake, caller, app, entries)
    total = Fed(0, 0, 0)
    pairs = list(_picture_pairs(program, ours, fit))
    start = 0
    while start < len(pairs):
        batch = list[Entry]()
        size, end = 0, start
        while end < len(pairs) and len(batch) < BATCH_FILES and size < BATCH_BYTES:
            batch += pairs[end][2]
            size += sum(entry.size for entry in pairs[end][2])
            end += 1
        files = AppFiles(lake, caller, app, batch)
        some = [(source, target) for source, target, _ in pairs[start:end]]
        fed = feed(lake, caller, app.id, some, skip_bad=skip_bad, files=files, first_number=start + 1)
        total = _sum(total, fed)
        start = end
    return total


def _picture_pairs(
    program: Program, entries: Sequence[Entry], fit: str
) -> Iterator[tuple[Any, Any, list[Entry]]]:
    goal = program.output.fields[0]
    if isinstance(goal, Tensor) and goal.rank in (2, 3):
        sides: dict[str, dict[str, Entry]] = {"input": {}, "output": {}}
        for entry in entries:
            parent, _, file = entry.path.rpartition("/")
            side = parent.rpartition("/")[2]
            if side in sides:
                sides[side][given_name(file).rpartition(".")[0]] = entry
        for key, source in sides["input"].items():
            target = sides["output"].get(key)
            if target is not None:
                yield {"$file": source.path, "fit": fit}, {"$file": target.path, "fit": fit}, [source, target]
        return
    for entry in entries:
        label = entry.path.rpartition("/")[0].rpartition("/")[2]
        yield {"$file": entry.path, "fit": fit}, label, [entry]


def _brought_home(lake: Lake, caller: Caller, app: App, entries: Sequence[Entry]) -> list[Entry]:
    """The same content below the app's folder, without sending a byte: the app's examples are its own."""
    outside = [entry for entry in entries if not entry.path.startswith(app.folder)]
    if not outside:
        return list(entries)
    moved = {entry.path: home_of(app.folder, entry.path, entry.digest) for entry in outside}
    bring_home(lake, caller, [(entry, moved[entry.path]) for entry in outside])
    return [entry._replace(path=moved.get(entry.path, entry.path)) for entry in entries]


def _tables(
    lake: Lake, caller: Caller, app: App, program: Program, entries: Sequence[Entry], book: StyleBook
) -> Iterator[tuple[Any, Any]]:
    files = AppFiles(lake, caller, app, entries)
    by_name = {entry.path.rpartition("/")[2].lower(): entry for entry in entries}
    if "x.npy" in by_name and "y.npy" in by_name:
        x, y = (_array(files(by_name[key].path), by_name[key].path) for key in ("x.npy", "y.npy"))
        yield from _array_pairs(x, y, "x.npy, y.npy")
    for entry in entries:
        if entry.size > LARGEST_TABLE:
            raise InvalidInput(f"{entry.path} is larger than {LARGEST_TABLE:,} bytes: feed it in parts")
        kind = entry.path.rpartition(".")[2].lower()
        if kind in ("csv", "tsv", "xlsx", "parquet", "jsonl", "npz"):
            yield from read_table(kind, files(entry.path), program, entry.path, book)


def read_table(
    kind: str, data: bytes, program: Program, path: str, book: StyleBook | None = None
) -> Iterator[tuple[Any, Any]]:
    """Pairs of one file; a file that is not what its name says is refused in words."""
    match kind:
        case "csv" | "tsv" | "xlsx":
            yield from pairs_of_rows(program, *read_table_file(data, path), book)
        case "parquet":
            yield from pairs_of_rows(program, *read_parquet(io.BytesIO(data), path), book)
        case "jsonl":
            yield from json_lines(data, path)
        case _:
            try:
                with ZipFile(io.BytesIO(data)) as packed:
                    unpacked = sum(member.file_size for member in packed.infolist())
                if unpacked > LARGEST_TABLE:
                    raise InvalidInput(
                        f"{path} unpacks to more than {LARGEST_TABLE:,} bytes: feed it in parts"
                    )
                with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                    x, y = (_named(arrays, names, path) for names in (INPUTS, OUTPUTS))
            except BROKEN_ARRAY as error:
                raise InvalidInput(f"{path} is not an npz file of plain arrays: {error}") from None
            yield from _array_pairs(x, y, path)


def json_lines(data: bytes, path: str) -> Iterator[tuple[Any, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(row, dict) or set(row) != {"input", "output"}:
            raise InvalidInput(f'{path}, line {number}: each line is {{"input": …, "output": …}}')
        yield row["input"], row["output"]


def _array(data: bytes, path: str) -> np.ndarray:
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except BROKEN_ARRAY as error:
        raise InvalidInput(f"{path} is not an npy file of a plain array: {error}") from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path} is not an npy file of a plain array")
    return array


def _named(arrays: Any, names: Sequence[str], path: str) -> np.ndarray:
    for key in arrays.files:
        if key.lower() in names:
            found: np.ndarray = arrays[key]
            return found
    raise ValueError(f"it has no array called {names[0]}; it has {', '.join(arrays.files)[:100]} ({path})")


def _array_pairs(x: np.ndarray, y: np.ndarray, path: str) -> Iterator[tuple[Any, Any]]:
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
        raise InvalidInput(f"{path}: {x.shape} inputs and {y.shape} outputs are not so many pairs")
    if not x.nbytes or not y.nbytes:  # any number of them would take no bytes
        raise InvalidInput(f"{path}: {x.shape} inputs and {y.shape} outputs hold nothing")
    for one, answer in zip(x, y, strict=True):
        yield _plain(one), _plain(answer)


def _plain(value: Any) -> Any:
    """An array of numbers as it is, anything else as what Python has for it."""
    return value if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" else value.tolist()


def _batches(pairs: Iterator[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    batch: list[tuple[Any, Any]] = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _sum(before: Fed, more: Fed) -> Fed:
    refused = (*before.refused, *more.refused)[:MOST_REFUSALS]
    notes = tuple(dict.fromkeys((*before.notes, *more.notes)))[:MOST_NOTES]
    return Fed(before.new + more.new, before.known + more.known, more.total, refused, notes)

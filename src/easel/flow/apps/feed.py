"""feed and refine: examples come in for good, and are switched off and on."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.errors import InvalidInput, NotFound
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import Lake
from easel.match.examples import Example
from easel.match.read import ExampleError, read_example
from easel.match.split import assign_folds
from easel.match.stored import StoredPair, digest_of, write_lines
from easel.match.summary import strata, summarise
from easel.records.app import App, Fed, FedExample
from easel.records.identity import Caller
from easel.store import apps
from easel.store.engine import Tx

MOST_AT_ONCE = 50_000


def feed(lake: Lake, caller: Caller, name: str, pairs: Sequence[tuple[Any, Any]]) -> Fed:
    """Validate every pair, leave out those fed before, store the rest in the lake, then name them.

    All or nothing: one wrong pair refuses the whole call, and a call that is repeated adds nothing twice. Bytes
    are in the lake before any row names them.
    """
    if len(pairs) > MOST_AT_ONCE:
        raise InvalidInput(f"at most {MOST_AT_ONCE:,} pairs at once; feed {len(pairs):,} in several calls")
    with lake.store.read() as tx:
        app = apps.find(tx, caller.project_id, name)
        program = parse_program(app.program)
        examples = []
        for number, (source, target) in enumerate(pairs, start=1):
            try:
                examples.append(read_example(program, source, target))
            except ExampleError as error:
                raise ExampleError(f"pair {number}: {error.message}", pair=number) from None
        digests = [digest_of(source, target) for source, target in pairs]
        before = apps.known(tx, app.id, digests)
        fresh = _first(digests, before)
        layers = strata(program, [examples[k] for k in fresh])
        folds = assign_folds(layers, apps.fold_counts(tx, app.id))
        total = len(apps.examples(tx, app.id))
    if not fresh:
        return Fed(0, len(pairs), total)
    stored = [
        StoredPair(digests[k], fold, pairs[k][0], pairs[k][1]) for k, fold in zip(fresh, folds, strict=True)
    ]
    reference = _into_the_lake(lake, caller, app, stored)
    with lake.store.write() as tx:
        # Another feed may have been quicker with the same pairs: its rows stand, and ours are left out.
        late = apps.known(tx, app.id, [pair.digest for pair in stored])
        rows = [(p.digest, s, p.fold) for p, s in zip(stored, layers, strict=True) if p.digest not in late]
        if rows:
            new = [examples[k] for k in fresh]
            # Of two feeds at once the later version holds the files of both, whichever is noted last.
            newest = max(reference, apps.find(tx, caller.project_id, app.id).examples_set or "", key=_version)
            apps.add_examples(tx, app.id, rows, newest, _summary(tx, app, program, new))
            body = {"new": len(rows), "set": reference}
            tx.emit("app.fed", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return Fed(len(rows), len(pairs) - len(rows), total + len(rows))


def _summary(tx: Tx, app: App, program: Program, fed: Sequence[Example]) -> dict[str, Any]:
    """Shapes and scales of this feed, with the counts of all of them."""
    counts = apps.fold_counts(tx, app.id)
    now = summarise(program, fed)
    classes = {stratum for stratum, _ in counts} | set(strata(program, fed))
    total = sum(counts.values()) + len(fed)
    return asdict(replace(now, examples=total, classes=len(classes) if now.classes else 0))


def _version(reference: str) -> int:
    return int(reference.rpartition(":")[2] or 0)


def _first(digests: Sequence[str], before: set[str]) -> list[int]:
    seen = set(before)
    found = []
    for k, digest in enumerate(digests):
        if digest not in seen:
            seen.add(digest)
            found.append(k)
    return found


def _into_the_lake(lake: Lake, caller: Caller, app: App, stored: Sequence[StoredPair]) -> str:
    """The next version of the app's examples: the files of all feeds so far and this one's."""
    folder = f"/apps/{app.name}/examples/"
    with tempfile.TemporaryDirectory() as here:
        (Path(here) / f"{stored[0].digest}.jsonl").write_bytes(write_lines(stored))
        session = ingest_folder(lake, caller, Path(here), folder)
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
    made = create_file_set(lake.store, caller, f"{app.name}-examples", [folder])
    return str(made)


def refine(tx: Tx, caller: Caller, name: str, digests: Sequence[str], *, on: bool) -> list[str]:
    """Switch examples; those that changed. The next trials use the refined set."""
    app = apps.find(tx, caller.project_id, name)
    strange = set(digests) - apps.known(tx, app.id, list(digests))
    if strange:
        raise NotFound(f"the app has no example {min(strange)}")
    changed = apps.switch(tx, app.id, list(digests), on)
    if changed:
        apps.note_refinement(tx, app.id, caller.user.id, changed, on)
        body = {"on": on, "examples": len(changed)}
        tx.emit("app.refined", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return changed


def undo_refine(tx: Tx, caller: Caller, name: str) -> list[str]:
    """Take back the newest switch that stands; those that changed."""
    app = apps.find(tx, caller.project_id, name)
    last = apps.take_last_refinement(tx, app.id)
    if last is None:
        raise NotFound(f"{name} has nothing to undo")
    digests, on = last
    changed = apps.switch(tx, app.id, digests, not on)
    body = {"on": not on, "examples": len(changed), "undo": True}
    tx.emit("app.refined", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return changed


def browse(tx: Tx, caller: Caller, name: str) -> list[FedExample]:
    """All examples ever fed, oldest first."""
    return apps.examples(tx, apps.find(tx, caller.project_id, name).id)

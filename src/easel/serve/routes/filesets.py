"""File sets."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import Annotated

from fastapi import Path, Query, Response

from easel.declare.verbs import Verb
from easel.errors import EaselError, InvalidInput
from easel.flow.jobs import replay
from easel.flow.lake import code, file_set, upload
from easel.flow.lake.file_set import add_version, resolve_beside
from easel.flow.lake.ingest import ingest_carried
from easel.flow.members import names_of
from easel.flow.prices import book_now, price_history, shape_of
from easel.lake.paths import file_path
from easel.price.grid import ON_CPU
from easel.records.job import Job
from easel.records.lake import FileSetVersion
from easel.serve.access import Member, ProjectAdmin, State, acts
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import lake as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/filesets", tags=["file sets"])

SetRef = Annotated[str, Path(max_length=150, description="name or name:version", examples=["HotpotQA:1"])]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("", response_model=Page[wire.FileSet])
def file_sets(
    state: State,
    caller: Member,
    limit: Limit = 100,
    cursor: Annotated[str | None, Query(max_length=128)] = None,
    prefix: Annotated[str, Query(max_length=128, pattern=r"^[A-Za-z0-9._-]*$")] = "",
    automatic: Annotated[bool, Query(description="Also the outputs of jobs that nobody named")] = True,
) -> Page[wire.FileSet]:
    """The latest version of each set, by name."""
    with state.store.read() as tx:
        found = file_set.list_file_sets(tx, caller, prefix, cursor or "", limit + 1, automatic=automatic)
        items = _shown(tx, found[:limit])
    return Page(items=items, next_cursor=items[-1].name if len(found) > limit else None)


@router.post("/code", response_model=wire.FileSet, status_code=201)
def save_code(state: State, caller: Member, create: Create, body: wire.SaveCode) -> Response:
    """The version of a code set with this content; a new one only where the newest holds something else."""
    if body.files and body.upload:
        raise InvalidInput("give an upload, or files with their bytes, not both")
    carried = ingest_carried(state.lake, caller, _contents(body.files)) if body.files else None

    def make(tx: Tx) -> wire.FileSet:
        if carried is not None:
            upload.commit(tx, caller, carried.id)
        upload_id = carried.id if carried is not None else body.upload
        made = code.save_code(
            tx,
            caller,
            body.name,
            base=body.base,
            base_digest=body.base_digest,
            upload_id=upload_id,
            without=body.without,
        )
        return _shown(tx, [made])[0]

    try:
        answer = create(caller, body, make)
    except EaselError:
        if carried is not None:
            upload.abort(state.lake, caller, carried.id)
        raise
    if carried is not None and "Idempotency-Replayed" in answer.headers:
        upload.abort(state.lake, caller, carried.id)  # the first request has committed one of its own
    return answer


def _contents(files: Sequence[wire.SmallFile]) -> dict[str, bytes]:
    """Returns the bytes by path, as the base64 of a request says them."""
    found: dict[str, bytes] = {}
    for file in files:
        path = file_path(file.path)
        if path in found:
            raise InvalidInput(f"{path!a} is named twice (perhaps in two spellings): name it once")
        try:
            found[path] = b64decode(file.content, validate=True)
        except ValueError as error:
            raise InvalidInput(f"the content of {path!a} is not base64") from error
    return found


@router.post("", response_model=wire.FileSet, status_code=201)
def create_file_set(state: State, caller: Member, create: Create, body: wire.CreateFileSet) -> Response:
    """The next version of a set, made of what the references name now."""
    resolved = resolve_beside(state.store, caller, body.name, body.sources)

    def make(tx: Tx) -> wire.FileSet:
        return _shown(tx, [add_version(tx, caller, body.name, resolved)])[0]

    return create(caller, body, make)


@router.get("/{ref}", response_model=wire.FileSet)
def show_file_set(state: State, caller: Member, ref: SetRef) -> wire.FileSet:
    """One version of a set; without a number the latest."""
    with state.store.read() as tx:
        return _shown(tx, [file_set.get_file_set(tx, caller, ref)])[0]


@router.get("/{name}/versions", response_model=Page[wire.FileSet])
def file_set_versions(state: State, caller: Member, name: SetRef) -> Page[wire.FileSet]:
    """All versions of a set, the newest first."""
    with state.store.read() as tx:
        return Page(items=_shown(tx, file_set.list_versions(tx, caller, name)))


@router.get("/{ref}/diff", response_model=Page[wire.Difference])
def file_set_difference(
    state: State,
    caller: Member,
    ref: SetRef,
    to: Annotated[str, Query(max_length=150, description="The set to compare with")],
    limit: Limit = 500,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> Page[wire.Difference]:
    """What changed from this set to another, by path."""
    with state.store.read() as tx:
        changes = file_set.compare(tx, caller, ref, to)
        page = list(islice((c for c in changes if c.path > (cursor or "")), limit + 1))
    items = [
        wire.Difference(
            path=c.path,
            before=c.before.version if c.before else None,
            after=c.after.version if c.after else None,
        )
        for c in page[:limit]
    ]
    return Page(items=items, next_cursor=items[-1].path if len(page) > limit else None)


@router.delete("/{name}", status_code=204)
def delete_file_set(state: State, caller: Member, name: SetRef) -> None:
    """Hide a set; its versions stay readable by number."""
    with state.store.write() as tx:
        file_set.delete_file_set(tx, caller, name)


@router.post("/{ref}/drop", response_model=wire.FileSet)
def drop_file_set(state: State, caller: ProjectAdmin, ref: SetRef) -> wire.FileSet:
    """Give up the bytes of a set that a job made; `replay` brings them back."""
    with state.store.write() as tx:
        return _shown(tx, [replay.drop(tx, caller, ref)])[0]


@router.get("/{ref}/replay", response_model=wire.ReplayPlan)
def replay_plan(state: State, caller: Member, ref: SetRef) -> wire.ReplayPlan:
    """The jobs that would run to regenerate a set, and what they took the last time."""
    with state.store.read() as tx:
        return _plan(replay.plan(tx, caller, ref, _price(tx)), [])


@router.post("/{ref}/replay", response_model=wire.ReplayPlan)
@acts(Verb.RUN)
def replay_file_set(state: State, caller: Member, ref: SetRef) -> wire.ReplayPlan:
    """Submit the next job of the plan; call again when it has finished. Nothing is submitted once the set is whole."""
    with state.store.write() as tx:
        found = replay.plan(tx, caller, ref, _price(tx))
        job = replay.replay_next(tx, caller, ref)
    return _plan(found, [job] if job else [])


def _price(tx: Tx) -> replay.Price:
    """What a job's time would cost at today's prices."""
    book, history = book_now(tx), price_history(tx)

    def price(job: Job) -> float | None:
        if job.started_at is None or job.ended_at is None:
            return None
        shape = shape_of(asdict(job.spec.resources), history)
        seconds = (job.ended_at - job.started_at).total_seconds()
        gpu = None if shape.device == ON_CPU else shape.device
        return float(book.charge(book.rate(shape.cpus, shape.memory_mb, gpu, shape.gpus), seconds))

    return price


def _plan(found: replay.ReplayPlan, submitted: Sequence[str]) -> wire.ReplayPlan:
    return wire.ReplayPlan(
        file_set=found.file_set,
        jobs=[job.id for job in found.jobs],
        seconds=found.seconds,
        cost=found.cost,
        unknown=list(found.unknown),
        submitted=list(submitted),
    )


def _shown(tx: Tx, found: Sequence[FileSetVersion]) -> list[wire.FileSet]:
    names = names_of(tx, [each.artifact.creator for each in found])
    return [
        wire.FileSet(
            name=each.artifact.name,
            version=each.artifact.version,
            files=each.files,
            bytes=each.artifact.size,
            creator=names[each.artifact.creator],
            created_at=each.artifact.created_at,
            sources=list(each.sources),
            dropped_at=each.artifact.dropped_at,
            digest=each.root.hex(),
        )
        for each in found
    ]

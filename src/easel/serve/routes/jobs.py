"""Jobs: submit, look, follow, kill, rerun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from easel.declare.verbs import Verb
from easel.flow.jobs import control, links, look, submit, table
from easel.flow.jobs.known_secrets import check_secrets
from easel.flow.jobs.look import Lines
from easel.flow.jobs.notebook import executed_copy, notebook_of
from easel.flow.jobs.waiting import WaitingReasons, why_waiting
from easel.flow.members import names_of
from easel.records import job as records
from easel.records.identity import Caller
from easel.serve.access import Member, State, acts, member
from easel.serve.creating import Create
from easel.serve.live import StreamRights
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.artifacts import tag_value
from easel.serve.saving import saved_as
from easel.serve.state import AppState, Tx
from easel.wire import job as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/jobs", tags=["jobs"])

JobId = Annotated[str, Path(max_length=60, examples=["job_01jc"])]
After = Annotated[int, Query(ge=0, lt=2**62, description="Begin with this line")]
Where = Annotated[
    str,
    Query(
        max_length=4000, description="Only those for which this holds", examples=["accuracy > 0.9 and lr < 1"]
    ),
]
FOLLOW_SECONDS = 0.25
"""Lines are written by the controller, perhaps of another process: look this often."""
FIRST_LOOK_SECONDS = 0.04
"""At first a stream is looked at more often, then less and less: somebody waits for the first line of a new job."""
SLOWER = 1.25

_PLAIN = tuple(field.name for field in fields(records.Job) if field.name in wire.Job.model_fields)
"""What of a job is shown as it is kept."""
_plain_of = attrgetter(*_PLAIN)


def shown(job: records.Job, waiting: str | None = None, user: str | None = None) -> wire.Job:
    values: dict[str, Any] = dict(zip(_PLAIN, _plain_of(job), strict=True))
    values |= {"spec": look.spec_as_json(job.spec), "kind": job.spec.run.kind, "name": job.name}
    values |= {"waiting": waiting, "user": user}
    return wire.Job.model_validate(values)


@router.post("", response_model=wire.Job, status_code=201)
@acts(Verb.RUN)
def submit_job(state: State, caller: Member, create: Create, body: wire.SubmitJob) -> Response:
    """Queue a job. It is immutable from now on."""
    spec = body.spec()
    check_secrets(state.secrets, caller.project_id, [spec])

    def make(tx: Tx) -> wire.Job:
        made = submit.submit_job(tx, caller, spec, after=body.after, code_digest=body.code_digest)
        return shown(made)

    return create(caller, body, make)


@router.get("", response_model=Page[wire.Job])
def list_jobs(state: State, caller: Member, page: Paging) -> Page[wire.Job]:
    """The project's jobs, newest first."""
    with state.store.glance() as tx:
        found = look.list_jobs(tx, caller, page)
        reasons = WaitingReasons(tx, state.settings.max_active_jobs, [job for job, _ in found.items])
        shown_jobs = [shown(job, reasons.of(job), owner) for job, owner in found.items]
    return Page(items=shown_jobs, next_cursor=found.next_cursor)


@router.get("/table", response_model=Page[wire.JobRow])
def job_table(state: State, caller: Member, page: Paging, where: Where = "") -> Page[wire.JobRow]:
    """Jobs with their tags, what they measured and what they cost; sorted by any of these."""
    with state.store.read() as tx:
        found = table.job_rows(tx, caller, page, where)
    items = [
        wire.JobRow(
            job=shown(row.job, user=row.owner),
            tags={key: tag_value(value) for key, value in row.tags.items()},
            cost=row.billed.micros / 1e6 if row.billed else None,
            currency=row.billed.currency if row.billed else None,
        )
        for row in found.items
    ]
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/counts", response_model=wire.JobCounts)
def count_jobs(state: State, caller: Member) -> wire.JobCounts:
    """How many there are, by state."""
    with state.store.read() as tx:
        found = look.count_by_state(tx, caller)
    return wire.JobCounts(total=sum(found.values()), states=found)


@router.get("/{job}", response_model=wire.Job)
def show_job(state: State, caller: Member, job: JobId) -> wire.Job:
    """One job; while it waits, `waiting` says what for."""
    with state.store.read() as tx:
        found = look.find_job(tx, caller, job)
        told = shown(found, why_waiting(tx, found, state.settings.max_active_jobs))
        owner = names_of(tx, [found.user_id])[found.user_id]
        return told.model_copy(update={"user": owner, "last_line": look.last_line(tx, caller, found)})


@router.get("/{job}/links", response_model=wire.JobLinks)
def job_links(state: State, caller: Member, job: JobId) -> wire.JobLinks:
    """What it was run for: apps, a study, a pipeline, a profile."""
    with state.store.read() as tx:
        return wire.JobLinks.model_validate(links.links_of(tx, caller, job))


@router.get("/{job}/environment", response_model=wire.LockedEnvironment)
def job_environment(state: State, caller: Member, job: JobId) -> wire.LockedEnvironment:
    """The Python and the packages that it ran with, version by version."""
    with state.store.read() as tx:
        found = look.environment_of(tx, caller, job)
    return wire.LockedEnvironment(
        name=found.name,
        python=found.python,
        packages=list(found.packages),
        job_id=found.job_id,
        made_at=found.made_at,
    )


@router.post("/{job}/kill", response_model=wire.Job)
@acts(Verb.RUN, even_archived=True)
def kill_job(state: State, caller: Member, job: JobId, body: wire.KillJob) -> wire.Job:
    """Ask for its end; repeating changes nothing. Its owner or a project admin may."""
    with state.store.write() as tx:
        return shown(control.kill_job(tx, caller, job, body.reason))


@router.post("/{job}/rerun", response_model=wire.Job, status_code=201)
@acts(Verb.RUN)
def rerun_job(caller: Member, create: Create, job: JobId, body: wire.RerunJob) -> Response:
    """A new job with this one as its parent."""

    def make(tx: Tx) -> wire.Job:
        return shown(control.rerun_job(tx, caller, job, input_set=body.input, from_cell=body.from_cell))

    return create(caller, body, make)


@router.get("/{job}/attempts", response_model=wire.JobAttempts)
def job_attempts(state: State, caller: Member, job: JobId) -> wire.JobAttempts:
    """Every attempt that is over: where it ran, how it ended, how long it held its device."""
    with state.store.read() as tx:
        found = look.attempts(tx, caller, job)
    return wire.JobAttempts(items=[wire.JobAttempt.model_validate(each) for each in found])


@router.get("/{job}/log", response_model=wire.LogPage)
def job_log(
    state: State,
    caller: Member,
    job: JobId,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    search: Annotated[str | None, Query(max_length=200, description="Only lines with these words")] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1000, description="An earlier attempt's log")] = None,
) -> wire.LogPage:
    """Lines of the log, in pages."""
    with state.store.read() as tx:
        found = look.log_lines(tx, caller, job, after=after, limit=limit, search=search, attempt=attempt)
    return _page(found)


@router.get("/{job}/log/text", response_class=StreamingResponse)
def log_text(
    state: State,
    caller: Member,
    job: JobId,
    attempt: Annotated[int | None, Query(ge=1, le=1000, description="An earlier attempt's log")] = None,
    times: Annotated[bool, Query(description="Each line after its moment and its stream")] = False,
) -> Response:
    """The whole log as text, to be saved."""
    with state.store.read() as tx:
        look.need_job(tx, caller, job)

    def text() -> Iterator[str]:
        after = 0
        while True:
            with state.store.read() as tx:
                found = look.log_lines(tx, caller, job, after=after, limit=10_000, attempt=attempt)
            if not found.lines:
                return
            after = found.next
            for line in found.lines:
                yield f"{line.at.isoformat()} {line.stream} {line.text}\n" if times else f"{line.text}\n"

    return StreamingResponse(text(), headers=saved_as(f"{job}.log"), media_type="text/plain")


def _known(state: State, caller: Member, job: JobId) -> None:
    """Said before a stream begins: afterwards there is no status left to give."""
    with state.store.read() as tx:
        look.need_job(tx, caller, job)


@router.get("/{job}/log/stream", response_class=EventSourceResponse, dependencies=[Depends(_known)])
async def follow_log(
    state: State,
    caller: Member,
    job: JobId,
    request: Request,
    after: After = 0,
    last_event_id: Annotated[int | None, Header(alias="Last-Event-ID", ge=0, lt=2**62)] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Lines as they come (server-sent events); resume with Last-Event-ID. Ends, with `end`, when the job has."""
    attempt, start = (None, after) if last_event_id is None else _place_of(last_event_id)
    async for event in _follow(state, caller, job, start, attempt, StreamRights(request, member)):
        yield event


_LINES_BITS = 40
"""Of a stream's event ids: below are the lines that were told, above the attempts before the one that they are of."""


def _event_id(attempt: int, position: int) -> str:
    return str((max(attempt, 1) - 1) << _LINES_BITS | position)


def _place_of(event_id: int) -> tuple[int | None, int]:
    """Returns the attempt whose lines were told, and how many: meanwhile the job may be in another attempt."""
    if event_id == 0:
        return None, 0
    return (event_id >> _LINES_BITS) + 1, event_id & ((1 << _LINES_BITS) - 1)


async def _follow(
    state: AppState, caller: Caller, job: str, position: int, attempt: int | None, rights: StreamRights
) -> AsyncIterator[ServerSentEvent]:
    pause = FIRST_LOOK_SECONDS
    while not (state.stopping.is_set() or await rights.lost()):
        found = await to_thread.run_sync(_read_lines, state, caller, job, position)
        if attempt is not None and found.attempt != attempt:
            position = 0  # it was tried again: its log begins anew
            attempt = found.attempt
            continue
        attempt = found.attempt
        if found.lines:
            position = found.next
            yield ServerSentEvent(data=_page(found), id=_event_id(attempt, position), event="lines")
        elif found.over:
            yield ServerSentEvent(data=_page(found), id=_event_id(attempt, position), event="end")
            return
        else:
            await asyncio.sleep(pause)
            pause = min(FOLLOW_SECONDS, pause * SLOWER)


def _read_lines(state: AppState, caller: Caller, job: str, after: int) -> Lines:
    with state.store.read() as tx:
        return look.log_lines(tx, caller, job, after=after)


def _page(found: Lines) -> wire.LogPage:
    lines = [wire.LogLine.model_validate(line) for line in found.lines]
    return wire.LogPage(
        lines=lines, next=found.next, attempt=found.attempt, over=found.over and not found.lines
    )


@router.get("/{job}/notebook", response_model=wire.ExecutedNotebook)
def job_notebook(
    state: State,
    caller: Member,
    job: JobId,
    since: Annotated[int, Query(ge=-1, lt=2**62, description="Only cells that changed after this")] = -1,
    attempt: Annotated[int | None, Query(ge=1, le=1000)] = None,
) -> wire.ExecutedNotebook:
    """The cells of a notebook as they stand. Their outputs are the job's words: show them without running them."""
    with state.store.read() as tx:
        found = notebook_of(tx, caller, job, since=since, attempt=attempt)
    return wire.ExecutedNotebook.model_validate(found, from_attributes=True)


@router.get("/{job}/notebook.ipynb", response_class=JSONResponse)
def job_notebook_file(state: State, caller: Member, job: JobId) -> JSONResponse:
    """The executed copy as a file, with all outputs so far."""
    with state.store.read() as tx:
        found = executed_copy(tx, caller, job)
    return JSONResponse(found, headers={"Content-Disposition": f'attachment; filename="{job}.ipynb"'})


@router.get("/{job}/metrics", response_model=wire.SeriesList)
def job_metrics(state: State, caller: Member, job: JobId) -> wire.SeriesList:
    """The series that the job has logged."""
    with state.store.read() as tx:
        names = look.series_lengths(tx, caller, job)
    return wire.SeriesList(items=[wire.Series(name=name, points=count) for name, count in names.items()])


@router.get("/{job}/metrics/{name:path}", response_model=wire.SeriesPoints)
def job_series(
    state: State,
    caller: Member,
    job: JobId,
    name: Annotated[str, Path(max_length=100, examples=["loss"])],
    points: Annotated[int, Query(ge=2, le=10_000, description="At most so many")] = 1000,
) -> wire.SeriesPoints:
    """One series, thinned to what a picture can show."""
    with state.store.read() as tx:
        total, kept = look.series(tx, caller, job, name, points)
    shown_points = [wire.Point.model_validate(point, from_attributes=True) for point in kept]
    return wire.SeriesPoints(name=name, total=total, points=shown_points)

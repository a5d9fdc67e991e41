"""Interactive sessions: jobs that serve pages to their owner."""

from __future__ import annotations

from dataclasses import dataclass

from easel.errors import Conflict, NotFound
from easel.flow.jobs.visits import RunningAttempt, running_attempt
from easel.flow.lake.visible import need_job
from easel.ids import ProjectId
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.store import identity, jobs
from easel.store.engine import Store, Tx


@dataclass(frozen=True, slots=True)
class Session:
    """The attempt that serves it, and the port of its own network at which it does."""

    running: RunningAttempt
    port: int


def project_of(store: Store, job_id: str) -> str:
    """The name of the project that a job is in, to ask whether the caller may enter it."""
    with store.read() as tx:
        row = jobs.rows(tx, [job_id], lock=False).get(job_id)
        found = identity.find_project(tx, ProjectId(row.project_id)) if row is not None else None
        if found is None:
            raise no_session(job_id)
        return found.name


def open_session(tx: Tx, caller: Caller, job_id: str) -> Session:
    """The session, for its owner: to anybody else it does not exist."""
    job = need_job(tx, caller, job_id)
    if job.spec.port is None or job.user_id != caller.user.id:
        raise no_session(job_id)
    if job.state is not JobState.RUNNING:
        raise Conflict(f"the session {job_id} is {job.state.value}: it can be used only while it runs")
    return Session(running_attempt(tx, job), job.spec.port)


def no_session(job_id: str) -> NotFound:
    return NotFound(f"there is no session {job_id[:60]!r} of yours: `easel lab` starts one")

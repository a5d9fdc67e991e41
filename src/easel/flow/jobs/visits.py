"""Coming in to a running job: who may, and what is on record about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from easel.declare.roles import Role
from easel.errors import Conflict, Denied
from easel.flow.lake.visible import need_job
from easel.records.attempt import AttemptKey
from easel.records.identity import Caller
from easel.records.job import Job, JobState
from easel.store import offers
from easel.store.engine import Tx


class Visit(StrEnum):
    """What somebody comes in for."""

    SHELL = "shell"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """One that can be entered. `worker` is the device that joined and runs it; None is the server's own machine."""

    key: AttemptKey
    worker: str | None = None


def running_attempt(tx: Tx, job: Job) -> RunningAttempt:
    """Returns the attempt at a job that runs now, and where."""
    key = AttemptKey(job.id, job.attempt)
    return RunningAttempt(key, offers.device_of(tx, str(key)))


def come_in(tx: Tx, caller: Caller, job_id: str, what: Visit, details: str = "") -> RunningAttempt:
    """The attempt to be visited, for its owner or an admin of the project. Every visit is an event of the job."""
    job = need_job(tx, caller, job_id)
    if job.user_id != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied("only its owner or an admin of the project may come in to a job")
    if job.state is not JobState.RUNNING:
        raise Conflict(f"job {job_id} is {job.state.value}: one can come in only while it runs")
    _record(tx, caller, job, "job.entered", what, details)
    return running_attempt(tx, job)


def leave(tx: Tx, caller: Caller, job_id: str, what: Visit) -> None:
    """Note that the visit is over."""
    _record(tx, caller, need_job(tx, caller, job_id), "job.left", what, "")


def _record(tx: Tx, caller: Caller, job: Job, kind: str, what: Visit, details: str) -> None:
    body = {"what": what.value, **({"details": details[:500]} if details else {})}
    tx.emit(kind, job.id, project_id=caller.project_id, actor=caller.user.id, body=body)

"""Queries on attempts that are over: how each ended, how long it held a device, whether it was billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, update

from easel.ids import ProjectId, UserId
from easel.records.attempt import EndReason
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_UNBILLED, job_attempts, jobs
from easel.store.upsert import chunks, lock


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """One attempt that is over. `seconds` is how long it held its device; one that never did is free."""

    job_id: str
    attempt: int
    device: str | None
    held_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    seconds: float
    state: str
    """What the job was then: finished, failed, killed, or queued where it is tried again."""
    end_reason: EndReason | None
    reason: str | None
    exit_code: int | None
    log_lines: int


def add(tx: Tx, ended: Sequence[EndedAttempt]) -> None:
    """Each once, in the transaction that ends it."""
    rows = [{**asdict(each), "billed": each.held_at is None} for each in ended]
    if rows:
        tx.execute(insert(job_attempts), rows)


def of_job(tx: Tx, job_id: str) -> list[EndedAttempt]:
    """The attempts of a job that are over, in order."""
    rows = tx.execute(
        select(job_attempts).where(job_attempts.c.job_id == job_id).order_by(job_attempts.c.attempt)
    )
    return [
        EndedAttempt(
            row.job_id,
            row.attempt,
            row.device,
            row.held_at,
            row.started_at,
            row.ended_at,
            row.seconds,
            row.state,
            EndReason(row.end_reason) if row.end_reason else None,
            row.reason,
            row.exit_code,
            row.log_lines,
        )
        for row in rows
    ]


# Bills. ------------------------------------------------------------------------------------------------------


def anything_unbilled(tx: Tx) -> bool:
    return tx.execute(select(job_attempts.c.seq).where(IS_UNBILLED).limit(1)).first() is not None


class UnbilledAttempt(NamedTuple):
    """An attempt that is over and no bill has seen, and what its job asked for."""

    seq: int
    job_id: str
    attempt: int
    held_at: datetime
    """One that never held a device counts as billed."""
    seconds: float
    project_id: ProjectId
    user_id: UserId
    spec: Mapping[str, Any]


class UnbilledTime(NamedTuple):
    """For how long an attempt that no bill has seen held its device, and what its job asked for."""

    held_at: datetime
    seconds: float
    spec: Mapping[str, Any]


_OF_ATTEMPT = (
    job_attempts.c.seq,
    job_attempts.c.job_id,
    job_attempts.c.attempt,
    job_attempts.c.held_at,
    job_attempts.c.seconds,
)


def unbilled(tx: Tx, limit: int) -> list[UnbilledAttempt]:
    """Returns the first attempts that no bill has seen. One who bills at a time."""
    lock(tx, "bills")
    query = (
        select(*_OF_ATTEMPT, jobs.c.project_id, jobs.c.user_id, jobs.c.spec)
        .join(jobs, jobs.c.id == job_attempts.c.job_id)
        .where(IS_UNBILLED)
    )
    return [UnbilledAttempt._make(row) for row in tx.execute(query.order_by(job_attempts.c.seq).limit(limit))]


def unbilled_of(tx: Tx, project_id: ProjectId) -> list[UnbilledTime]:
    """Returns the times of a project's attempts that are over and no bill has seen."""
    query = select(job_attempts.c.held_at, job_attempts.c.seconds, jobs.c.spec)
    query = query.join(jobs, jobs.c.id == job_attempts.c.job_id)
    found = tx.execute(query.where(IS_UNBILLED, jobs.c.project_id == project_id))
    return [UnbilledTime._make(row) for row in found]


def mark_billed(tx: Tx, numbers: Sequence[int]) -> None:
    for some in chunks(numbers):
        tx.execute(update(job_attempts).where(job_attempts.c.seq.in_(some)).values(billed=True))


def typical_seconds(tx: Tx, among: int = 50) -> float | None:
    """How long the last attempts held their devices, on average."""
    last = (
        select(job_attempts.c.seconds)
        .where(job_attempts.c.held_at.is_not(None))
        .order_by(job_attempts.c.seq.desc())
        .limit(among)
        .subquery()
    )
    found = tx.execute(select(func.avg(last.c.seconds))).scalar()
    return None if found is None else float(found)

"""Queries on where jobs wait or run, and on what is asked of those: to end, to give way, to wait for other devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Select, select, update

from easel.ids import JobId
from easel.records.attempt import AttemptKey
from easel.records.job import ACTIVE, JobState
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, jobs
from easel.store.upsert import chunks, in_slots, slot_values, slots_for


@cache
def _placed(slots: int) -> Select[*tuple[Any, ...]]:
    query = select(jobs.c.id, jobs.c.state, jobs.c.device, jobs.c.give_way)
    return query.where(in_slots(jobs.c.id, "id", slots))


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """The state of a job, its device, and whether it was asked to stop at its next checkpoint and has not."""

    state: JobState
    device: str | None = None
    gives_way: bool = False


def placements(tx: Tx, ids: Sequence[JobId]) -> dict[JobId, JobPlacement]:
    """Returns where those of these jobs are that exist."""
    found = {}
    for some in chunks(ids):
        slots = slots_for(some)
        for row in tx.execute(_placed(slots), slot_values("id", some, slots)):
            state = JobState(row.state)
            found[JobId(row.id)] = JobPlacement(state, row.device, bool(row.give_way) and state in ACTIVE)
    return found


def to_kill(tx: Tx) -> list[str]:
    """Keys of attempts whose end was asked for."""
    query = select(jobs.c.id, jobs.c.attempt).where(IS_ACTIVE, jobs.c.kill_requested.is_(True))
    return [str(AttemptKey(row.id, row.attempt)) for row in tx.execute(query)]


def to_give_way(tx: Tx) -> dict[str, bool]:
    """Keys of attempts that were asked to give way, and whether each does so by itself at its next checkpoint: trials
    do, and commands are stopped."""
    query = select(jobs.c.id, jobs.c.attempt, jobs.c.kind).where(IS_ACTIVE, jobs.c.give_way.is_(True))
    return {str(AttemptKey(row.id, row.attempt)): row.kind == "trial" for row in tx.execute(query)}


def wants_of_queued(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, dict[str, str]]:
    """The labels that those of these jobs which wait in the queue want of their device."""
    found: dict[JobId, dict[str, str]] = {}
    for some in chunks(job_ids):
        query = select(jobs.c.id, jobs.c.spec).where(jobs.c.id.in_(some), IS_QUEUED)
        found |= {JobId(row.id): dict(row.spec.get("wants") or {}) for row in tx.execute(query)}
    return found


def put_off(tx: Tx, job_ids: Sequence[JobId]) -> frozenset[JobId]:
    """Returns those of these jobs that wait in the queue and may not begin yet."""
    found: set[JobId] = set()
    for some in chunks(job_ids):
        later = (jobs.c.id.in_(some), IS_QUEUED, jobs.c.not_before > tx.now)
        found |= {JobId(row.id) for row in tx.execute(select(jobs.c.id).where(*later))}
    return frozenset(found)


def want_nothing(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Lets these, as far as they wait, run on any device."""
    for job_id in job_ids:
        here = (jobs.c.id == job_id, IS_QUEUED)
        row = tx.execute(select(jobs.c.spec).where(*here)).first()
        if row is not None:
            tx.execute(update(jobs).where(*here).values(spec={**row.spec, "wants": {}}))


def ask_to_give_way(tx: Tx, job_ids: Sequence[JobId]) -> list[JobId]:
    """Asks these; returns those that run and had not been asked before."""
    asked = []
    for job_id in job_ids:
        here = (jobs.c.id == job_id, IS_ACTIVE, jobs.c.give_way.is_(False))
        if tx.execute(update(jobs).where(*here).values(give_way=True)).rowcount:
            asked.append(job_id)
    return asked

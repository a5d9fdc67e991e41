"""Queries on what waiting jobs were told, and on what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import exists, func, or_, select

from easel.ids import JobId, ProjectId
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, jobs
from easel.store.schema.price import promises
from easel.store.upsert import insert_or


class KeptPromise(NamedTuple):
    """Every column of the table `promises`, in its order, and when the job held a device and ended."""

    job_id: str
    project_id: str
    made_at: datetime
    start_at: datetime | None
    end_80: datetime | None
    end_90: datetime | None
    end_95: datetime | None
    forecast: Sequence[float | None] | None
    held_at: datetime | None
    ended_at: datetime | None


_TOLD = exists().where(promises.c.job_id == jobs.c.id)


def untold(tx: Tx, limit: int = 2000) -> list[JobId]:
    """Jobs that wait, could start, and were told nothing yet; not trials, whose time is the policy's to choose."""
    waits = or_(IS_QUEUED, IS_ACTIVE)
    query = select(jobs.c.id).where(
        waits,
        jobs.c.held_at.is_(None),
        jobs.c.blocked == 0,
        jobs.c.kind != "trial",
        jobs.c.attempt <= 1,
        ~_TOLD,
    )
    return [JobId(row.id) for row in tx.execute(query.limit(limit))]


def add(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keeps what jobs were told; who was told something before keeps that."""
    if rows:
        tx.execute(insert_or(tx, promises).on_conflict_do_nothing(index_elements=["job_id"]), list(rows))


def came_true(
    tx: Tx, project_id: ProjectId | None, limit: int, *, settled: bool = False
) -> list[KeptPromise]:
    """Returns the last promises to jobs that finished at their first attempt, with when they held a device and ended.

    With `settled` only those made before any that is still open: of the others only the quick have ended, and whoever
    learned from them would become too bold.
    """
    query = select(
        promises, func.coalesce(jobs.c.held_at, jobs.c.started_at).label("held_at"), jobs.c.ended_at
    ).join(jobs, jobs.c.id == promises.c.job_id)
    query = query.where(jobs.c.state == "finished", jobs.c.attempt == 1)
    if settled:
        still = select(func.min(promises.c.made_at)).join(jobs, jobs.c.id == promises.c.job_id)
        oldest = tx.execute(still.where(or_(IS_QUEUED, IS_ACTIVE))).scalar_one()
        query = query if oldest is None else query.where(promises.c.made_at < oldest)
    if project_id is not None:
        query = query.where(promises.c.project_id == project_id)
    found = tx.execute(query.order_by(promises.c.made_at.desc()).limit(limit))
    return [KeptPromise._make(row) for row in found]

"""Queries on what holds the pool and what waits for it, over all projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, func, or_, select

from easel.store.engine import Tx
from easel.store.job_queues import PROJECT
from easel.store.schema.identity import projects
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, job_attempts, job_queues, jobs

_HELD = select(jobs.c.device, jobs.c.project_id, jobs.c.spec["resources"].label("resources")).where(
    IS_ACTIVE, jobs.c.held_at.is_not(None), jobs.c.device.is_not(None)
)
_PAUSED = exists().where(
    job_queues.c.project_id == jobs.c.project_id,
    or_(job_queues.c.user_id == jobs.c.user_id, job_queues.c.user_id == PROJECT),
    job_queues.c.paused,
)
_WAITING = (
    select(jobs.c.project_id, func.count().label("jobs"))
    .where(
        jobs.c.held_at.is_(None),
        or_(jobs.c.state == "launching", and_(IS_QUEUED, jobs.c.blocked == 0, ~_PAUSED)),
    )
    .group_by(jobs.c.project_id)
)


class HeldRoom(NamedTuple):
    """What one job holds, of which device, and for which project."""

    device: str
    project_id: str
    resources: Mapping[str, Any] | None


def held(tx: Tx) -> list[HeldRoom]:
    """Returns what each of the jobs holds that hold room."""
    return [HeldRoom._make(row) for row in tx.execute(_HELD)]


class Holder(NamedTuple):
    """A job that holds room now."""

    name: str
    project_id: str


def holders(tx: Tx) -> list[Holder]:
    """Returns the jobs that hold room, the longest first."""
    query = select(jobs.c.name, jobs.c.project_id).where(IS_ACTIVE, jobs.c.held_at.is_not(None))
    return [Holder._make(row) for row in tx.execute(query.order_by(jobs.c.held_at))]


def waiting(tx: Tx) -> dict[str, int]:
    """How many jobs of each project wait for room, and not for a paused queue or another job."""
    return {row.project_id: row.jobs for row in tx.execute(_WAITING)}


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """A project held so much of a device from one moment to another; `end` is None while it still does."""

    project: str
    start: datetime
    end: datetime | None
    vcpu: float
    gpus: float


_NEED = (jobs.c.spec["resources"]["vcpu"].as_float(), jobs.c.spec["resources"]["gpus"].as_float())
_PAST = (
    select(projects.c.name, job_attempts.c.held_at, job_attempts.c.ended_at, *_NEED)
    .join_from(job_attempts, jobs, jobs.c.id == job_attempts.c.job_id)
    .join(projects, projects.c.id == jobs.c.project_id)
    .where(job_attempts.c.held_at.is_not(None))
)
_NOW = (
    select(projects.c.name, jobs.c.held_at, *_NEED)
    .join_from(jobs, projects, projects.c.id == jobs.c.project_id)
    .where(IS_ACTIVE, jobs.c.held_at.is_not(None))
)


def held_since(tx: Tx, since: datetime, most: int) -> list[HeldSpan]:
    """Returns what was held after a moment: attempts that ended since, the newest `most`, and those that still run."""
    past = _PAST.where(job_attempts.c.ended_at > since).order_by(job_attempts.c.ended_at.desc()).limit(most)
    spans = [
        HeldSpan(name, at, end, vcpu or 0.0, gpus or 0.0) for name, at, end, vcpu, gpus in tx.execute(past)
    ]
    now = [HeldSpan(name, at, None, vcpu or 0.0, gpus or 0.0) for name, at, vcpu, gpus in tx.execute(_NOW)]
    return spans + now

"""Queries on quotas, and on what is used of them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, select

from easel.ids import ProjectId, UserId
from easel.records.quota import Quota, QuotaUse
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, job_attempts, jobs
from easel.store.schema.operate import quotas
from easel.store.storage import held_bytes

PROJECT = UserId("")
"""Stands for the project itself."""


_OF_PROJECT = select(quotas).where(quotas.c.project_id == bindparam("of_project"))


def of_project(tx: Tx, project_id: ProjectId) -> dict[UserId, Quota]:
    """The quotas of a project and of people in it; `PROJECT` is the project's own."""
    rows = tx.execute(_OF_PROJECT, {"of_project": project_id})
    return {UserId(row.user_id): Quota(row.bytes, row.gpu_hours, row.jobs) for row in rows}


def put(tx: Tx, project_id: ProjectId, user_id: UserId, quota: Quota) -> None:
    """Set a quota; one without any limit is no quota."""
    here = (quotas.c.project_id == project_id) & (quotas.c.user_id == user_id)
    tx.execute(delete(quotas).where(here))
    if quota != Quota():
        values = {"bytes": quota.bytes, "gpu_hours": quota.gpu_hours, "jobs": quota.jobs}
        tx.execute(insert(quotas).values(project_id=project_id, user_id=user_id, **values))


def used(tx: Tx, project_id: ProjectId, user_id: UserId, month_start: datetime) -> QuotaUse:
    """What a project, or a person in it, holds and has used since the month began."""
    person = None if user_id == PROJECT else user_id
    return QuotaUse(
        held_bytes(tx, project_id, person),
        gpu_hours(tx, project_id, person, month_start),
        unfinished(tx, project_id, person),
    )


def unfinished(tx: Tx, project_id: ProjectId, user_id: UserId | None) -> int:
    query = select(func.count()).where(jobs.c.project_id == project_id, jobs.c.ended_at.is_(None))
    if user_id is not None:
        query = query.where(jobs.c.user_id == user_id)
    return int(tx.execute(query).scalar_one())


def gpu_hours(tx: Tx, project_id: ProjectId, user_id: UserId | None, since: datetime) -> float:
    """GPUs times hours of attempts that ended since a moment, and of those that hold GPUs now."""
    gpus = jobs.c.spec["resources"]["gpus"].as_float() * func.coalesce(jobs.c.spec["workers"].as_integer(), 1)
    here = jobs.c.project_id == project_id
    if user_id is not None:
        here &= jobs.c.user_id == user_id
    ended = select(func.coalesce(func.sum(job_attempts.c.seconds * gpus), 0.0))
    ended = ended.join(jobs, jobs.c.id == job_attempts.c.job_id).where(here, job_attempts.c.ended_at >= since)
    seconds = float(tx.execute(ended).scalar_one())
    running = select(jobs.c.held_at, gpus.label("gpus")).where(here, IS_ACTIVE, jobs.c.held_at.is_not(None))
    for row in tx.execute(running):
        seconds += max((tx.now - max(row.held_at, since)).total_seconds(), 0.0) * float(row.gpus or 0.0)
    return seconds / 3600

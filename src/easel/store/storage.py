"""Queries on who holds how many bytes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from easel.ids import ProjectId, UserId
from easel.records.lake import Kind
from easel.store.engine import Tx
from easel.store.schema.jobs import job_logs, jobs
from easel.store.schema.lake import artifacts, objects


@dataclass(frozen=True, slots=True)
class Holding:
    """What one person holds in one project. `bytes` counts every file version; equal bytes are stored once."""

    project_id: ProjectId
    user_id: UserId
    files: int
    bytes: int
    log_bytes: int


def holdings(tx: Tx, project_id: ProjectId | None = None) -> list[Holding]:
    """Returns what is held by project and creator, the largest first."""
    files = select(
        artifacts.c.project_id,
        artifacts.c.creator.label("user_id"),
        func.count().label("files"),
        func.coalesce(func.sum(artifacts.c.size), 0).label("bytes"),
    ).where(artifacts.c.kind == Kind.FILE, artifacts.c.dropped_at.is_(None))
    logs = select(
        jobs.c.project_id,
        jobs.c.user_id,
        func.coalesce(func.sum(func.length(job_logs.c.data)), 0).label("bytes"),
    ).join(job_logs, job_logs.c.job_id == jobs.c.id)
    if project_id is not None:
        files = files.where(artifacts.c.project_id == project_id)
        logs = logs.where(jobs.c.project_id == project_id)
    found = {
        (row.project_id, row.user_id): (int(row.files), int(row.bytes))
        for row in tx.execute(files.group_by(artifacts.c.project_id, artifacts.c.creator))
    }
    logged = {
        (row.project_id, row.user_id): int(row.bytes)
        for row in tx.execute(logs.group_by(jobs.c.project_id, jobs.c.user_id))
    }
    made = [
        Holding(ProjectId(key[0]), UserId(key[1]), *found.get(key, (0, 0)), logged.get(key, 0))
        for key in found.keys() | logged.keys()
    ]
    return sorted(made, key=lambda each: (-each.bytes - each.log_bytes, each.project_id, each.user_id))


def held_bytes(tx: Tx, project_id: ProjectId, user_id: UserId | None = None) -> int:
    """Bytes of all file versions of a project, or of one person in it."""
    query = select(func.coalesce(func.sum(artifacts.c.size), 0)).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == Kind.FILE, artifacts.c.dropped_at.is_(None)
    )
    if user_id is not None:
        query = query.where(artifacts.c.creator == user_id)
    return int(tx.execute(query).scalar_one())


def stored(tx: Tx) -> tuple[int, int]:
    """Objects in the blob store, and their bytes."""
    query = select(func.count(), func.coalesce(func.sum(objects.c.size), 0)).where(
        objects.c.state == "present"
    )
    count, size = tx.execute(query).one()
    return int(count), int(size)

"""Queries on what holds the pool and what waits for it, over all projects."""

from __future__ import annotations

from sqlalchemy import func, select

from easel.store.engine import AnyRow, Tx
from easel.store.schema.jobs import IS_ACTIVE, jobs

_HELD = select(jobs.c.device, jobs.c.project_id, jobs.c.spec["resources"].label("resources")).where(
    IS_ACTIVE, jobs.c.held_at.is_not(None), jobs.c.device.is_not(None)
)
_WAITING = (
    select(jobs.c.project_id, func.count().label("jobs"))
    .where(jobs.c.state.in_(("queued", "launching")), jobs.c.held_at.is_(None))
    .group_by(jobs.c.project_id)
)


def held(tx: Tx) -> list[AnyRow]:
    """The jobs that hold room: device, project and resources of each."""
    return list(tx.execute(_HELD))


def waiting(tx: Tx) -> dict[str, int]:
    """How many jobs of each project wait for room."""
    return {row.project_id: row.jobs for row in tx.execute(_WAITING)}

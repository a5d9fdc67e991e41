"""Counts over the whole installation, cheap enough to be asked for every few seconds."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, job_attempts, jobs


def unfinished(tx: Tx) -> dict[str, int]:
    """How many jobs are in each state that is not an end."""
    counted: dict[str, int] = {}
    for condition in (IS_QUEUED, IS_ACTIVE):
        query = select(jobs.c.state, func.count()).where(condition).group_by(jobs.c.state)
        counted |= {state: int(count) for state, count in tx.execute(query)}
    return counted


def oldest_queued(tx: Tx) -> datetime | None:
    """When the job was submitted that has waited longest and waits for no other."""
    query = select(func.min(jobs.c.submitted_at)).where(IS_QUEUED, jobs.c.blocked == 0)
    found: datetime | None = tx.execute(query).scalar_one()
    return found


def attempts_after(tx: Tx, seq: int) -> tuple[int, dict[str, int]]:
    """The last attempt that ended after `seq`, and how many have since, by the state of their end."""
    query = (
        select(job_attempts.c.state, func.count(), func.max(job_attempts.c.seq))
        .where(job_attempts.c.seq > seq)
        .group_by(job_attempts.c.state)
    )
    rows = tx.execute(query).all()
    return max((int(last) for _, _, last in rows), default=seq), {
        state: int(count) for state, count, _ in rows
    }

"""Queries on which jobs need which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, insert, select

from easel.ids import JobId
from easel.store.engine import Tx
from easel.store.schema.jobs import job_needs, jobs

_NEEDED = (
    select(job_needs.c.job_id, jobs.c.id)
    .join(job_needs, job_needs.c.needs == jobs.c.id)
    .where(job_needs.c.job_id.in_(bindparam("of_jobs", expanding=True)), jobs.c.ended_at.is_(None))
    .order_by(jobs.c.seq)
)


def waits_for(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, list[str]]:
    """The jobs that must end before each of these may start, those that have not."""
    found: dict[JobId, list[str]] = {}
    for job_id, needed in tx.execute(_NEEDED, {"of_jobs": list(job_ids)}):
        found.setdefault(job_id, []).append(needed)
    return found


def add_needs(tx: Tx, pairs: Sequence[tuple[JobId, JobId]]) -> None:
    """(job, what it needs)."""
    if pairs:
        tx.execute(insert(job_needs), [{"job_id": job, "needs": needs} for job, needs in pairs])


def dependants(tx: Tx, ids: Sequence[str]) -> dict[str, list[str]]:
    """Which jobs need each of these."""
    found: dict[str, list[str]] = {}
    for start in range(0, len(ids), 500):
        query = select(job_needs).where(job_needs.c.needs.in_(ids[start : start + 500]))
        for row in tx.execute(query):
            found.setdefault(row.needs, []).append(row.job_id)
    return found

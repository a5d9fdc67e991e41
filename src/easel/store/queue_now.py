"""Queries on everything that holds or waits for a device, and on how long such jobs took before."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import and_, func, select

from easel.store.engine import AnyRow, Tx
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, jobs
from easel.store.schema.price import provisions

_COLUMNS = (
    jobs.c.id,
    jobs.c.project_id,
    jobs.c.user_id,
    jobs.c.name,
    jobs.c.spec,
    jobs.c.attempt,
    jobs.c.give_way,
    jobs.c.state,
    jobs.c.device,
    jobs.c.submitted_at,
    jobs.c.launched_at,
    jobs.c.held_at,
    jobs.c.started_at,
)
_HELD_AT = func.coalesce(jobs.c.held_at, jobs.c.started_at)


def active(tx: Tx) -> list[AnyRow]:
    """Jobs that have left their queues, in that order."""
    return list(tx.execute(select(*_COLUMNS).where(IS_ACTIVE).order_by(jobs.c.launched_at, jobs.c.seq)))


def queued(tx: Tx, limit: int = 2000) -> list[AnyRow]:
    """Jobs that wait in a queue and could start, each owner's in its order."""
    query = select(*_COLUMNS).where(IS_QUEUED, jobs.c.blocked == 0)
    return list(tx.execute(query.order_by(jobs.c.rank, jobs.c.seq).limit(limit)))


def promises(tx: Tx, job_ids: Iterable[str]) -> dict[str, AnyRow]:
    """Expected seconds with their 90 % interval, of jobs that were provisioned."""
    query = select(
        provisions.c.job_id,
        provisions.c.promised_seconds,
        provisions.c.low_seconds,
        provisions.c.high_seconds,
    )
    return {row.job_id: row for row in tx.execute(query.where(provisions.c.job_id.in_(list(job_ids))))}


def took(tx: Tx, project_id: str, name: str, among: int = 20) -> list[float]:
    """Returns for how many seconds the last jobs of this name that finished held their devices."""
    of_name = and_(jobs.c.project_id == project_id, jobs.c.name == name, jobs.c.state == "finished")
    query = select(_HELD_AT.label("held_at"), jobs.c.ended_at).where(of_name).order_by(jobs.c.seq.desc())
    return _seconds(tx, query.limit(among))


def took_lately(tx: Tx, among: int = 50) -> list[float]:
    """Returns for how many seconds the last jobs of anybody that finished held their devices."""
    query = select(_HELD_AT.label("held_at"), jobs.c.ended_at).where(jobs.c.state == "finished")
    return _seconds(tx, query.order_by(jobs.c.seq.desc()).limit(among))


def _seconds(tx: Tx, query: object) -> list[float]:
    rows = tx.execute(query)  # type: ignore[arg-type]  # a select of two moments
    return [(row.ended_at - row.held_at).total_seconds() for row in rows if row.held_at and row.ended_at]


def last_held(tx: Tx, among: int = 100) -> list[AnyRow]:
    """Which device the last jobs that finished held, and from when until when; when each had left its queue."""
    query = select(jobs.c.device, jobs.c.launched_at, jobs.c.held_at, jobs.c.ended_at).where(
        jobs.c.state == "finished", jobs.c.held_at.is_not(None), jobs.c.launched_at.is_not(None)
    )
    return list(tx.execute(query.order_by(jobs.c.seq.desc()).limit(among)))

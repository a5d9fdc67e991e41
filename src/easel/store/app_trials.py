"""Queries on the trials of apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Float, bindparam, delete, func, insert, select, update

from easel.ids import AppId, JobId
from easel.records.app import AppTrial
from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_trials
from easel.store.upsert import chunks


def add(
    tx: Tx,
    app_id: AppId,
    job_id: JobId,
    candidate: Mapping[str, Any],
    decision: Mapping[str, Any],
    count: int,
) -> None:
    """A decision and the job that carries it out, on `count` examples."""
    tx.execute(
        insert(app_trials).values(
            app_id=app_id,
            job_id=job_id,
            candidate=dict(candidate),
            decision=dict(decision),
            started_at=tx.now,
            examples=count,
            ended=False,
        )
    )


def trials(tx: Tx, app_id: AppId | None = None, *, running: bool = False) -> list[AppTrial]:
    """In the order of the decisions; of all apps where none is named."""
    query = select(app_trials).order_by(app_trials.c.seq)
    if app_id is not None:
        query = query.where(app_trials.c.app_id == app_id)
    if running:
        query = query.where(app_trials.c.ended.is_(False))
    return [_trial(row) for row in tx.execute(query)]


def trials_of(tx: Tx, app_ids: Sequence[AppId]) -> dict[AppId, list[AppTrial]]:
    """Of each of these apps, in the order of the decisions."""
    found: dict[AppId, list[AppTrial]] = {app_id: [] for app_id in app_ids}
    for some in chunks(app_ids):
        query = select(app_trials).where(app_trials.c.app_id.in_(some)).order_by(app_trials.c.seq)
        for row in tx.execute(query):
            found[row.app_id].append(_trial(row))
    return found


def end(tx: Tx, job_id: JobId, quality: float | None, seconds: float, model_set: str | None) -> bool:
    """Once: a repeated report changes nothing."""
    done = tx.execute(
        update(app_trials)
        .where(app_trials.c.job_id == job_id, app_trials.c.ended.is_(False))
        .values(ended=True, ended_at=tx.now, quality=quality, seconds=seconds, model_set=model_set)
    )
    return done.rowcount == 1


def forget(tx: Tx, app_id: AppId) -> None:
    """Its results are of no use any more; jobs and models stay in the history of the lake."""
    tx.execute(delete(app_trials).where(app_trials.c.app_id == app_id))


_SERVED = select(app_trials).where(
    app_trials.c.app_id == bindparam("of_app"),
    app_trials.c.quality.is_not(None),
    app_trials.c.model_set.is_not(None),
)
_FRESH = (
    _SERVED.where(app_trials.c.examples >= bindparam("at_least", type_=Float))
    .order_by(app_trials.c.quality.desc(), app_trials.c.seq)
    .limit(1)
)
_OLDER = _SERVED.order_by(app_trials.c.examples.desc(), app_trials.c.quality.desc(), app_trials.c.seq).limit(
    1
)


def best(tx: Tx, app_id: AppId, at_least: float) -> AppTrial | None:
    """The highest quality, the earlier of equals, among those found on `at_least` so many examples.

    If all were found on fewer, those on the most examples count.
    """
    row = tx.execute(_FRESH, {"of_app": app_id, "at_least": at_least}).first()
    if row is None:
        row = tx.execute(_OLDER, {"of_app": app_id}).first()
    return None if row is None else _trial(row)


def of_model(tx: Tx, app_id: AppId, model_set: str) -> AppTrial | None:
    row = tx.execute(
        select(app_trials).where(app_trials.c.app_id == app_id, app_trials.c.model_set == model_set)
    ).first()
    return None if row is None else _trial(row)


def fingerprint(tx: Tx) -> tuple[int, int]:
    """Changes whenever a trial is started or ends."""
    found = tx.execute(select(func.count(), func.count(app_trials.c.ended_at))).one()
    return int(found[0]), int(found[1])


def _trial(row: AnyRow) -> AppTrial:
    return AppTrial(
        row.app_id,
        row.job_id,
        row.candidate,
        row.decision,
        row.started_at,
        row.examples,
        row.ended,
        row.quality,
        row.seconds,
        row.model_set,
        row.ended_at,
    )

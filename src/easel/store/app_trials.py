"""Queries on the trials of apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Float, Select, bindparam, delete, func, insert, select, update

from easel.ids import AppId, JobId
from easel.records.app import AppTrial, EndedTrial
from easel.records.job import JobOutcome
from easel.store.engine import AnyRow, Tx
from easel.store.job_outcomes import OUTCOME, outcome_of
from easel.store.schema.apps import app_trials
from easel.store.schema.jobs import jobs
from easel.store.upsert import chunks, in_slots, slot_values, slots_for

_ADD = insert(app_trials)


def add(
    tx: Tx,
    app_ids: Sequence[AppId],
    job_id: JobId,
    name: str,
    candidate: Mapping[str, Any],
    decision: Mapping[str, Any],
    count: int,
    scale: float = 1.0,
) -> None:
    """A decision and the job that carries it out for these apps, on `count` examples; `name` is the candidate's.

    `scale` is its device's time for a second of the reference device.
    """
    tx.execute(
        _ADD,
        [
            {
                "app_id": app_id,
                "job_id": job_id,
                "name": name,
                "score": decision["reasons"]["acquisition"],
                "candidate": dict(candidate),
                "decision": dict(decision),
                "started_at": tx.now,
                "examples": count,
                "ended": False,
                "shared": len(app_ids),
                "scale": scale,
            }
            for app_id in app_ids
        ],
    )


def trials(tx: Tx, app_id: AppId | None = None, *, running: bool = False) -> list[AppTrial]:
    """Returns trials in the order of the decisions; of all apps where none is named."""
    query = select(app_trials).order_by(app_trials.c.seq)
    if app_id is not None:
        query = query.where(app_trials.c.app_id == app_id)
    if running:
        query = query.where(app_trials.c.ended.is_(False))
    return [_trial(row) for row in tx.execute(query)]


_NAMED = (
    select(app_trials)
    .where(app_trials.c.app_id == bindparam("of_app"), app_trials.c.name.startswith(bindparam("begins")))
    .order_by(app_trials.c.seq)
)


def named(tx: Tx, app_id: AppId, beginning: str) -> list[AppTrial]:
    """Returns the trials of an app whose candidates' names begin so, in the order of the decisions."""
    return [_trial(row) for row in tx.execute(_NAMED, {"of_app": app_id, "begins": beginning})]


def trials_of(tx: Tx, app_ids: Sequence[AppId]) -> dict[AppId, list[AppTrial]]:
    """Returns the trials of each of these apps, in the order of the decisions."""
    found: dict[AppId, list[AppTrial]] = {app_id: [] for app_id in app_ids}
    for some in chunks(app_ids):
        query = select(app_trials).where(app_trials.c.app_id.in_(some)).order_by(app_trials.c.seq)
        for row in tx.execute(query):
            found[row.app_id].append(_trial(row))
    return found


_ENDED = select(
    app_trials.c.app_id,
    app_trials.c.job_id,
    app_trials.c.name,
    func.coalesce(app_trials.c.score, 0.0),
    app_trials.c.examples,
    app_trials.c.quality,
    func.coalesce(app_trials.c.seconds, 0.0),
    func.coalesce(app_trials.c.spent_micros, 0),
    app_trials.c.model_set,
    app_trials.c.ended_at,
    app_trials.c.share,
    app_trials.c.scale,
    app_trials.c.luck,
).where(app_trials.c.ended.is_(True))


def ended(tx: Tx, app_id: AppId | None = None) -> list[EndedTrial]:
    """Ended trials without their decisions, in the order in which they ended; of all apps where none is named."""
    query = _ENDED if app_id is None else _ENDED.where(app_trials.c.app_id == app_id)
    return [EndedTrial(*row) for row in tx.execute(query.order_by(app_trials.c.ended_at, app_trials.c.seq))]


@cache
def _running_of(slots: int) -> Select[*tuple[Any, ...]]:
    """Returns the statement for so many jobs; their columns have other names, for the tables have some in common."""
    of_job = [column.label(f"job_{column.name}") for column in OUTCOME]
    both = app_trials.outerjoin(jobs, jobs.c.id == app_trials.c.job_id)
    query = select(*app_trials.c, jobs.c.id.label("job_there"), *of_job).select_from(both)
    query = query.where(in_slots(app_trials.c.job_id, "job", slots), app_trials.c.ended.is_(False))
    return query.order_by(app_trials.c.seq)


_END = (
    update(app_trials)
    .where(app_trials.c.job_id == bindparam("of_job"), app_trials.c.ended.is_(False))
    .values(
        ended=True,
        ended_at=bindparam("at"),
        quality=bindparam("reached"),
        seconds=bindparam("took"),
        model_set=bindparam("model"),
        spent_micros=bindparam("spent"),
        share=bindparam("came_to"),
        error=bindparam("unsure"),
        baseline=bindparam("simplest"),
        luck=bindparam("lucky"),
    )
)


def running_of(tx: Tx, job_ids: Sequence[JobId]) -> tuple[list[AppTrial], dict[JobId, JobOutcome]]:
    """Returns the trials of these jobs that were not settled yet, in the order of the decisions, and what came of
    those of the jobs that exist."""
    rows: list[AnyRow] = []
    for some in chunks(job_ids):
        slots = slots_for(some)
        rows += tx.execute(_running_of(slots), slot_values("job", some, slots))
    rows.sort(key=lambda row: row.seq)
    own = len(app_trials.c)
    outcomes = {JobId(row[own]): outcome_of(row[own + 1 :]) for row in rows if row[own] is not None}
    return [_trial(row) for row in rows], outcomes


def end(
    tx: Tx,
    job_id: JobId,
    quality: float | None,
    seconds: float,
    model_set: str | None,
    spent_micros: int | None = None,
    share: float = 1.0,
    *,
    error: float | None = None,
    baseline: float | None = None,
    luck: float | None = None,
) -> bool:
    """End a trial once: a repeated report changes nothing.

    `spent_micros` is what each of its apps pays, `share` how far its slice brought the trial, `error` how sure
    its score is, `baseline` what always giving the same answer scores, `luck` by how much the best
    of what it combined scored too high.
    """
    done = tx.execute(
        _END,
        {
            "of_job": job_id,
            "at": tx.now,
            "reached": quality,
            "took": seconds,
            "model": model_set,
            "spent": spent_micros,
            "came_to": share,
            "unsure": error,
            "simplest": baseline,
            "lucky": luck,
        },
    )
    return done.rowcount >= 1


def copy(tx: Tx, job_ids: Sequence[JobId], to: AppId) -> int:
    """Give an app the trials of another that learns the same thing; how many it did not have. They cost it nothing."""
    added = 0
    for job_id in job_ids:
        here = select(app_trials).where(app_trials.c.job_id == job_id)
        if tx.execute(here.where(app_trials.c.app_id == to)).first() is not None:
            continue
        row = tx.execute(here.order_by(app_trials.c.seq).limit(1)).first()
        if row is not None:
            kept = {**row._mapping, "app_id": to, "spent_micros": 0 if row.ended else None}
            del kept["seq"]
            tx.execute(_ADD, kept)
            added += 1
    return added


def sharers(tx: Tx, job_id: JobId) -> int:
    """How many apps a job is a trial of."""
    return int(tx.execute(select(func.count()).where(app_trials.c.job_id == job_id)).scalar_one())


def rescore(
    tx: Tx,
    app_id: AppId,
    job_id: JobId,
    quality: float,
    error: float | None = None,
    baseline: float | None = None,
    luck: float | None = None,
) -> None:
    """The score of an ended trial in another metric; `luck` where it was combined for that one."""
    here = (app_trials.c.app_id == app_id, app_trials.c.job_id == job_id)
    tx.execute(
        update(app_trials).where(*here).values(quality=quality, error=error, baseline=baseline, luck=luck)
    )


def forget(tx: Tx, app_id: AppId, job_ids: Sequence[JobId]) -> None:
    """Forgets results that are of no use any more; jobs and models stay in the history of the lake."""
    for some in chunks(job_ids):
        tx.execute(delete(app_trials).where(app_trials.c.app_id == app_id, app_trials.c.job_id.in_(some)))


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


_MIXTURE = (
    _SERVED.where(app_trials.c.examples >= bindparam("at_least", type_=Float), app_trials.c.luck.is_not(None))
    .order_by(func.coalesce(app_trials.c.ended_at, app_trials.c.started_at).desc(), app_trials.c.seq)
    .limit(1)
)


def mixture(tx: Tx, app_id: AppId, at_least: float) -> AppTrial | None:
    """The newest trial that combined others and measured the luck of their choice, on `at_least` so many examples."""
    row = tx.execute(_MIXTURE, {"of_app": app_id, "at_least": at_least}).first()
    return None if row is None else _trial(row)


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
        row.name,
        row.spent_micros,
        row.shared,
        row.error,
        row.baseline,
        row.share,
        row.scale,
        row.luck,
    )

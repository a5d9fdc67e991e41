"""Queries on apps, their examples and what was switched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from easel.errors import Conflict, NotFound
from easel.ids import AppId, JobId, ProjectId, UserId
from easel.records.app import App, AppTrial, FedExample
from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_examples, app_refinements, app_trials, apps

_CHUNK = 500


def add(tx: Tx, project_id: ProjectId, user_id: UserId, name: str, program: str, metric: str | None) -> App:
    taken = tx.execute(select(apps.c.id).where(apps.c.project_id == project_id, apps.c.name == name)).first()
    if taken is not None:
        raise Conflict(f"there is an app {name!r} already: choose another name")
    app = App(AppId(tx.mint("app")), project_id, user_id, name, program, metric, tx.now, None, None)
    tx.execute(
        insert(apps).values(
            id=app.id,
            project_id=project_id,
            user_id=user_id,
            name=name,
            program=program,
            metric=metric,
            created_at=tx.now,
        )
    )
    return app


def find(tx: Tx, project_id: ProjectId, name: str) -> App:
    """By name or id; an app of another project does not exist here."""
    row = tx.execute(
        select(apps).where(apps.c.project_id == project_id, (apps.c.name == name) | (apps.c.id == name))
    ).first()
    if row is None:
        raise NotFound(f"no app {name!r} in this project")
    return _app(row)


def all_apps(tx: Tx) -> list[App]:
    """Of every project, oldest first: what shares the pool."""
    return [_app(row) for row in tx.execute(select(apps).order_by(apps.c.created_at, apps.c.id))]


def list_apps(tx: Tx, project_id: ProjectId) -> list[App]:
    rows = tx.execute(select(apps).where(apps.c.project_id == project_id).order_by(apps.c.id))
    return [_app(row) for row in rows]


def remove(tx: Tx, app_id: AppId) -> None:
    """The app and all that is known of it; its files and jobs stay in the lake's history."""
    for table in (app_examples, app_refinements, app_trials):
        tx.execute(delete(table).where(table.c.app_id == app_id))
    tx.execute(delete(apps).where(apps.c.id == app_id))


def known(tx: Tx, app_id: AppId, digests: Sequence[str]) -> set[str]:
    """Which of these were fed before."""
    found: set[str] = set()
    for start in range(0, len(digests), _CHUNK):
        some = digests[start : start + _CHUNK]
        query = select(app_examples.c.digest).where(
            app_examples.c.app_id == app_id, app_examples.c.digest.in_(some)
        )
        found |= {row.digest for row in tx.execute(query)}
    return found


def fold_counts(tx: Tx, app_id: AppId) -> Counter[tuple[str, int]]:
    """How many examples of each stratum are in each fold."""
    query = (
        select(app_examples.c.stratum, app_examples.c.fold, func.count())
        .where(app_examples.c.app_id == app_id)
        .group_by(app_examples.c.stratum, app_examples.c.fold)
    )
    return Counter({(stratum, fold): count for stratum, fold, count in tx.execute(query)})


def add_examples(
    tx: Tx,
    app_id: AppId,
    new: Sequence[tuple[str, str, int]],
    examples_set: str,
    summary: Mapping[str, Any],
) -> None:
    """Rows `(digest, stratum, fold)`, and the file-set version that holds them with all earlier ones."""
    values = [
        {"app_id": app_id, "digest": digest, "stratum": stratum, "fold": fold, "on": True, "fed_at": tx.now}
        for digest, stratum, fold in new
    ]
    tx.execute(insert(app_examples), values)
    tx.execute(
        update(apps).where(apps.c.id == app_id).values(examples_set=examples_set, summary=dict(summary))
    )


def examples(tx: Tx, app_id: AppId) -> list[FedExample]:
    """All ever fed, oldest first."""
    rows = tx.execute(
        select(app_examples).where(app_examples.c.app_id == app_id).order_by(app_examples.c.seq)
    )
    return [FedExample(row.digest, row.stratum, row.fold, row.on, row.fed_at) for row in rows]


def switch(tx: Tx, app_id: AppId, digests: Sequence[str], on: bool) -> list[str]:
    """Those that really changed."""
    changed: list[str] = []
    for start in range(0, len(digests), _CHUNK):
        some = digests[start : start + _CHUNK]
        here = (app_examples.c.app_id == app_id, app_examples.c.digest.in_(some), app_examples.c.on != on)
        changed += [row.digest for row in tx.execute(select(app_examples.c.digest).where(*here))]
        tx.execute(update(app_examples).where(*here).values(on=on))
    return changed


def note_refinement(tx: Tx, app_id: AppId, actor: UserId, digests: Sequence[str], on: bool) -> None:
    tx.execute(
        insert(app_refinements).values(
            app_id=app_id, actor=actor, on=on, digests=list(digests), undone=False, at=tx.now
        )
    )


def take_last_refinement(tx: Tx, app_id: AppId) -> tuple[list[str], bool] | None:
    """The newest one that was not undone, marked as undone."""
    row = tx.execute(
        select(app_refinements)
        .where(app_refinements.c.app_id == app_id, app_refinements.c.undone.is_(False))
        .order_by(app_refinements.c.seq.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    tx.execute(update(app_refinements).where(app_refinements.c.seq == row.seq).values(undone=True))
    return list(row.digests), bool(row.on)


def _app(row: AnyRow) -> App:
    return App(
        row.id,
        row.project_id,
        row.user_id,
        row.name,
        row.program,
        row.metric,
        row.created_at,
        row.examples_set,
        row.summary,
    )


def add_trial(
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


def trials(tx: Tx, app_id: AppId | None = None) -> list[AppTrial]:
    """In the order of the decisions; of all apps where none is named."""
    query = select(app_trials).order_by(app_trials.c.seq)
    rows = tx.execute(query if app_id is None else query.where(app_trials.c.app_id == app_id))
    return [
        AppTrial(
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
        )
        for row in rows
    ]


def end_trial(tx: Tx, job_id: JobId, quality: float | None, seconds: float, model_set: str | None) -> bool:
    """Once: a repeated report changes nothing."""
    done = tx.execute(
        update(app_trials)
        .where(app_trials.c.job_id == job_id, app_trials.c.ended.is_(False))
        .values(ended=True, quality=quality, seconds=seconds, model_set=model_set)
    )
    return done.rowcount == 1

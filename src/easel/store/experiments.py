"""Queries on experiments. Number 0 is made up where it has no row yet."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, update

from easel.ids import ProjectId
from easel.records.run import DEFAULT_EXPERIMENT, Experiment
from easel.store.engine import AnyRow, Tx
from easel.store.schema.jobs import jobs
from easel.store.schema.tracking import experiments
from easel.store.upsert import insert_or, lock

_COLUMNS = (
    experiments.c.number,
    experiments.c.name,
    experiments.c.artifact_location,
    experiments.c.tags,
    experiments.c.created_at,
    experiments.c.updated_at,
    experiments.c.deleted_at,
)
MOST = 2**31


def _default(since: datetime) -> Experiment:
    return Experiment(DEFAULT_EXPERIMENT, "Default", None, {}, since, since, None)


def _of(row: AnyRow) -> Experiment:
    return Experiment(*row)


def find(tx: Tx, project_id: ProjectId, number: int, since: datetime) -> Experiment | None:
    """`since` is when the project was made: the default experiment is as old."""
    if not 0 <= number < MOST:
        return None
    query = select(*_COLUMNS).where(experiments.c.project_id == project_id, experiments.c.number == number)
    row = tx.execute(query).one_or_none()
    if row is not None:
        return _of(row)
    return _default(since) if number == DEFAULT_EXPERIMENT else None


def all_of(tx: Tx, project_id: ProjectId, since: datetime) -> list[Experiment]:
    query = select(*_COLUMNS).where(experiments.c.project_id == project_id).order_by(experiments.c.number)
    found = [_of(row) for row in tx.execute(query)]
    return found if any(each.number == DEFAULT_EXPERIMENT for each in found) else [_default(since), *found]


def hold(tx: Tx, project_id: ProjectId) -> None:
    """Waits for whoever names experiments of this project already, and makes others wait."""
    lock(tx, f"experiments {project_id}")


def add(tx: Tx, project_id: ProjectId, name: str, location: str | None, tags: dict[str, str]) -> int:
    """A new one; returns its number. The caller holds the names."""
    newest = select(func.max(experiments.c.number)).where(experiments.c.project_id == project_id)
    number = int(tx.execute(newest).scalar_one() or DEFAULT_EXPERIMENT) + 1
    tx.execute(
        insert(experiments).values(
            project_id=project_id,
            number=number,
            name=name,
            artifact_location=location,
            tags=tags,
            created_at=tx.now,
            updated_at=tx.now,
        )
    )
    return number


def change(tx: Tx, project_id: ProjectId, seen: Experiment, **values: Any) -> None:
    if seen.number == DEFAULT_EXPERIMENT:
        made = insert_or(tx, experiments).values(
            project_id=project_id,
            number=seen.number,
            name=seen.name,
            tags=dict(seen.tags),
            created_at=seen.created_at,
            updated_at=seen.updated_at,
        )
        tx.execute(made.on_conflict_do_nothing())
    here = (experiments.c.project_id == project_id, experiments.c.number == seen.number)
    tx.execute(update(experiments).where(*here).values(updated_at=tx.now, **values))


def mark_runs(tx: Tx, project_id: ProjectId, number: int, deleted_at: datetime | None) -> None:
    """Hide all runs of an experiment, or show them again."""
    tx.execute(
        update(jobs)
        .where(jobs.c.project_id == project_id, jobs.c.experiment == number)
        .values(deleted_at=deleted_at)
    )

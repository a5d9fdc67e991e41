"""Queries on logged models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import insert, select, update

from easel.ids import ProjectId
from easel.records.run import LoggedModel
from easel.store.engine import AnyRow, Tx
from easel.store.schema.tracking import logged_models
from easel.store.upsert import is_in, lock


def _of(row: AnyRow) -> LoggedModel:
    return LoggedModel(**row._mapping)


def add(tx: Tx, new: LoggedModel) -> None:
    tx.execute(insert(logged_models).values(**asdict(new)))


def hold(tx: Tx, model_id: str) -> None:
    lock(tx, f"logged model {model_id}")


def find(tx: Tx, project_id: ProjectId, model_id: str) -> LoggedModel | None:
    """Returns a logged model; None where it is deleted."""
    query = select(logged_models).where(
        logged_models.c.project_id == project_id,
        logged_models.c.id == model_id,
        logged_models.c.deleted_at.is_(None),
    )
    row = tx.execute(query).one_or_none()
    return _of(row) if row is not None else None


def of_experiments(tx: Tx, project_id: ProjectId, experiments: Sequence[int]) -> list[LoggedModel]:
    """Newest first."""
    query = select(logged_models).where(
        logged_models.c.project_id == project_id,
        is_in(tx, logged_models.c.experiment, experiments),
        logged_models.c.deleted_at.is_(None),
    )
    order = (logged_models.c.created_at.desc(), logged_models.c.id)
    return [_of(row) for row in tx.execute(query.order_by(*order))]


def change(tx: Tx, model_id: str, **values: Any) -> None:
    tx.execute(
        update(logged_models).where(logged_models.c.id == model_id).values(updated_at=tx.now, **values)
    )

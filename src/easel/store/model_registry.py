"""Queries on registered models and their versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, insert, select, update

from easel.ids import ProjectId
from easel.records.run import ModelVersion, RegisteredModel
from easel.store.engine import AnyRow, Tx
from easel.store.schema.tracking import model_versions, registered_models
from easel.store.upsert import lock


def hold(tx: Tx, project_id: ProjectId) -> None:
    """Waits for whoever changes the registry of this project already, and makes others wait."""
    lock(tx, f"registry {project_id}")


def _model(row: AnyRow) -> RegisteredModel:
    return RegisteredModel(**row._mapping)


def _version(row: AnyRow) -> ModelVersion:
    return ModelVersion(**row._mapping)


def find(tx: Tx, project_id: ProjectId, name: str) -> RegisteredModel | None:
    query = select(registered_models).where(
        registered_models.c.project_id == project_id, registered_models.c.name == name
    )
    row = tx.execute(query).one_or_none()
    return _model(row) if row is not None else None


def all_models(tx: Tx, project_id: ProjectId) -> list[RegisteredModel]:
    """Returns the registered models by name."""
    query = select(registered_models).where(registered_models.c.project_id == project_id)
    return [_model(row) for row in tx.execute(query.order_by(registered_models.c.name))]


def add(tx: Tx, new: RegisteredModel) -> None:
    tx.execute(insert(registered_models).values(**asdict(new)))


def change(tx: Tx, seen: RegisteredModel, **values: Any) -> None:
    here = (registered_models.c.project_id == seen.project_id, registered_models.c.name == seen.name)
    tx.execute(update(registered_models).where(*here).values(**{"updated_at": tx.now, **values}))


def rename(tx: Tx, seen: RegisteredModel, name: str) -> None:
    change(tx, seen, name=name)
    here = (model_versions.c.project_id == seen.project_id, model_versions.c.name == seen.name)
    tx.execute(update(model_versions).where(*here).values(name=name, updated_at=tx.now))


def remove(tx: Tx, seen: RegisteredModel) -> None:
    """Removes a model; its file set stays, so that what was made can still be traced."""
    for table in (model_versions, registered_models):
        tx.execute(delete(table).where(table.c.project_id == seen.project_id, table.c.name == seen.name))


def versions(tx: Tx, project_id: ProjectId, *, name: str | None = None) -> list[ModelVersion]:
    """Versions of one model or of all."""
    query = select(model_versions).where(model_versions.c.project_id == project_id)
    if name is not None:
        query = query.where(model_versions.c.name == name)
    order = (model_versions.c.name, model_versions.c.version)
    return [_version(row) for row in tx.execute(query.order_by(*order))]


def find_version(tx: Tx, project_id: ProjectId, name: str, number: int) -> ModelVersion | None:
    query = select(model_versions).where(
        model_versions.c.project_id == project_id,
        model_versions.c.name == name,
        model_versions.c.version == number,
    )
    row = tx.execute(query).one_or_none()
    return _version(row) if row is not None else None


def add_version(tx: Tx, new: ModelVersion) -> None:
    tx.execute(insert(model_versions).values(**asdict(new)))


def change_version(tx: Tx, seen: ModelVersion, **values: Any) -> None:
    tx.execute(update(model_versions).where(*_is(seen)).values(updated_at=tx.now, **values))


def remove_version(tx: Tx, seen: ModelVersion) -> None:
    tx.execute(delete(model_versions).where(*_is(seen)))


def _is(seen: ModelVersion) -> tuple[Any, ...]:
    return (
        model_versions.c.project_id == seen.project_id,
        model_versions.c.name == seen.name,
        model_versions.c.version == seen.version,
    )

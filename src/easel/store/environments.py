"""Queries on environments: what each project's requirements were locked to, so that every machine builds the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from easel.ids import ProjectId
from easel.records.environment import LockedEnvironment
from easel.store.engine import Tx
from easel.store.schema.jobs import environments
from easel.store.upsert import insert_or

_MOST = 50
"""So many locks of one file are known to a device: it has one for each Python version, machine and included file."""


def keep(tx: Tx, found: Sequence[LockedEnvironment]) -> None:
    """Writes down what is not known yet."""
    for each in found:
        values = {name: getattr(each, name) for name in LockedEnvironment.__slots__}
        values["packages"] = list(each.packages)
        tx.execute(insert_or(tx, environments).values(values).on_conflict_do_nothing())


def locks(tx: Tx, project_id: ProjectId, asked: str) -> Mapping[str, tuple[str, ...]]:
    """Returns what this file was first locked to, for each kind of machine."""
    columns = environments.c
    query = (
        select(columns.lock, columns.packages)
        .where(columns.project_id == project_id, columns.asked == asked)
        .order_by(columns.made_at, columns.name)
        .limit(_MOST)
    )
    found: dict[str, tuple[str, ...]] = {}
    for row in tx.execute(query):
        found.setdefault(row.lock, tuple(row.packages))
    return found


def find(tx: Tx, project_id: ProjectId, name: str) -> LockedEnvironment | None:
    columns = environments.c
    query = select(environments).where(columns.project_id == project_id, columns.name == name)
    row = tx.execute(query.order_by(columns.made_at).limit(1)).one_or_none()
    if row is None:
        return None
    return LockedEnvironment(**{**row._mapping, "packages": tuple(row.packages)})

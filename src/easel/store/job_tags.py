"""Tags that jobs carry, give themselves, and give to file sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from easel.ids import ProjectId
from easel.records.lake import Kind
from easel.store.engine import Tx
from easel.store.schema.lake import artifacts, file_sets, tags
from easel.store.upsert import insert_or


@dataclass(frozen=True, slots=True)
class NewTag:
    project_id: ProjectId
    artifact_id: int
    kind: Kind
    key: str
    value: str | float


def put(tx: Tx, new: Sequence[NewTag]) -> None:
    """The last value of a key counts."""
    latest = {(tag.artifact_id, tag.key): tag for tag in new}
    if not latest:
        return
    made = insert_or(tx, tags)
    columns = ("text", "number", "moment")
    made = made.on_conflict_do_update(
        index_elements=["artifact_id", "key"], set_={name: made.excluded[name] for name in columns}
    )
    rows = [
        {
            "artifact_id": tag.artifact_id,
            "key": tag.key,
            "project_id": tag.project_id,
            "kind": tag.kind.value,
            "text": tag.value if isinstance(tag.value, str) else None,
            "number": None if isinstance(tag.value, str) else tag.value,
            "moment": None,
        }
        for tag in latest.values()
    ]
    tx.execute(made, rows)


def latest_set(tx: Tx, project_id: ProjectId, name: str) -> int | None:
    """The newest version of a file set, by its number in the catalogue."""
    query = (
        select(artifacts.c.id)
        .join(
            file_sets,
            (file_sets.c.project_id == artifacts.c.project_id)
            & (file_sets.c.name == artifacts.c.name)
            & (file_sets.c.latest == artifacts.c.version),
        )
        .where(
            artifacts.c.project_id == project_id,
            artifacts.c.kind == Kind.FILE_SET.value,
            artifacts.c.name == name,
            file_sets.c.deleted_at.is_(None),
        )
    )
    return tx.execute(query).scalar_one_or_none()

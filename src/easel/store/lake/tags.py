"""Tags: one typed value a key on an artifact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from easel.ids import ProjectId
from easel.records.lake import Artifact, Kind, TagValue
from easel.store.engine import Tx
from easel.store.schema.lake import tags
from easel.store.upsert import chunks

SHORT = 500
"""Characters of a text that an index holds."""


@dataclass(frozen=True, slots=True)
class NewTag:
    """One value for one artifact of the catalogue."""

    project_id: ProjectId
    artifact_id: int
    kind: Kind
    key: str
    value: TagValue
    number: float | None = None
    """What a text means as a number, where it is searched by that too."""


def put_tags(tx: Tx, of: Artifact, values: Mapping[str, TagValue]) -> None:
    """Set tags of one artifact."""
    put_all(tx, [NewTag(of.project_id, of.id, of.kind, key, value) for key, value in values.items()])


def put_all(tx: Tx, new: Sequence[NewTag]) -> None:
    """Set tags; a key that is there already takes the new value and its type, the last one given counts."""
    latest = {(tag.artifact_id, tag.key): tag for tag in new}
    if not latest:
        return
    rows = [
        {
            "artifact_id": tag.artifact_id,
            "key": tag.key,
            "project_id": tag.project_id,
            "kind": tag.kind.value,
            **_column(tag.value),
            **({} if tag.number is None else {"number": tag.number}),
        }
        for tag in latest.values()
    ]
    tx.execute(_put(tx.conn.dialect.name), rows)


@cache
def _put(dialect: str) -> sqlite.Insert | postgresql.Insert:
    """Built once for each database: every job that is submitted asks for it."""
    made = postgresql.insert(tags) if dialect == "postgresql" else sqlite.insert(tags)
    return made.on_conflict_do_update(
        index_elements=["artifact_id", "key"],
        set_={c: getattr(made.excluded, c) for c in ("text", "number", "moment", "whole")},
    )


def remove_tags(tx: Tx, artifact_id: int, keys: Sequence[str]) -> int:
    return tx.execute(delete(tags).where(tags.c.artifact_id == artifact_id, tags.c.key.in_(keys))).rowcount


def tags_of(tx: Tx, artifact_ids: Sequence[int]) -> dict[int, dict[str, TagValue]]:
    found: dict[int, dict[str, TagValue]] = {identity: {} for identity in artifact_ids}
    for some in chunks(artifact_ids):
        text = func.coalesce(tags.c.whole, tags.c.text)
        query = select(tags.c.artifact_id, tags.c.key, text, tags.c.number, tags.c.moment)
        rows = tx.execute(query.where(tags.c.artifact_id.in_(some)).order_by(tags.c.artifact_id, tags.c.key))
        for identity, key, said, number, moment in rows:
            found[identity][key] = said if said is not None else number if number is not None else moment
    return found


def _column(value: TagValue) -> dict[str, Any]:
    row: dict[str, Any] = {"text": None, "number": None, "moment": None, "whole": None}
    if isinstance(value, str):
        row |= {"text": value[:SHORT], "whole": value if len(value) > SHORT else None}
    elif isinstance(value, datetime):
        row["moment"] = value
    else:
        row["number"] = float(value)
    return row

"""Queries on notes."""

from __future__ import annotations

from sqlalchemy import delete, func, insert, select

from easel.ids import ProjectId
from easel.records.note import ArtifactNote
from easel.store.engine import Tx
from easel.store.schema.identity import users
from easel.store.schema.lake import notes

_NOTES = select(
    notes.c.id,
    notes.c.artifact_id,
    notes.c.user_id,
    func.coalesce(users.c.name, notes.c.user_id),
    notes.c.text,
    notes.c.written_at,
).outerjoin_from(notes, users, users.c.id == notes.c.user_id)


def of(tx: Tx, artifact_id: int) -> list[ArtifactNote]:
    """Returns the notes on a file version, a set version or a job, oldest first."""
    query = _NOTES.where(notes.c.artifact_id == artifact_id).order_by(notes.c.written_at, notes.c.id)
    return [ArtifactNote(*row) for row in tx.execute(query)]


def find(tx: Tx, project_id: ProjectId, note_id: str) -> ArtifactNote | None:
    """Returns a note of the project, or None."""
    row = tx.execute(_NOTES.where(notes.c.project_id == project_id, notes.c.id == note_id)).one_or_none()
    return None if row is None else ArtifactNote(*row)


def add(tx: Tx, project_id: ProjectId, note: ArtifactNote) -> None:
    tx.execute(
        insert(notes).values(
            id=note.id,
            project_id=project_id,
            artifact_id=note.artifact_id,
            user_id=note.user_id,
            text=note.text,
            written_at=note.written_at,
        )
    )


def remove(tx: Tx, note_id: str) -> None:
    tx.execute(delete(notes).where(notes.c.id == note_id))

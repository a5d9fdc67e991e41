"""Notes on jobs, models (file sets) and files: whoever may change the thing may write one, its readers read it."""

from __future__ import annotations

from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput, NotFound, QuotaExhausted
from easel.flow.lake.tag import find_artifact, may_change
from easel.flow.lake.visible import need_job
from easel.records.identity import Caller
from easel.records.lake import Artifact, Kind
from easel.records.note import ArtifactNote
from easel.store import notes
from easel.store.engine import Tx
from easel.store.lake.grants import rights_of

MAX_NOTES = 500


def notes_on(tx: Tx, caller: Caller, kind: Kind, reference: str) -> list[ArtifactNote]:
    """Returns the notes on a thing that the caller may read, oldest first."""
    return notes.of(tx, _find(tx, caller, kind, reference).id)


def write_note(tx: Tx, caller: Caller, kind: Kind, reference: str, text: str) -> ArtifactNote:
    """Adds a note to a thing that the caller may change."""
    found = _find(tx, caller, kind, reference)
    if not may_change(rights_of(tx, caller), found):
        raise Denied(f"you may read {found.name} but not change it: ask an admin of this project for a grant")
    kept = text.strip()
    if not kept or "\0" in kept:
        raise InvalidInput("a note needs some text, without NUL")
    if len(notes.of(tx, found.id)) >= MAX_NOTES:
        raise QuotaExhausted(f"{found.name} has {MAX_NOTES} notes, the most there may be: remove some")
    note = ArtifactNote(tx.mint("note"), found.id, caller.user.id, caller.user.name, kept, tx.now)
    notes.add(tx, caller.project_id, note)
    _tell(tx, caller, "note.written", found, note)
    return note


def remove_note(tx: Tx, caller: Caller, kind: Kind, reference: str, note_id: str) -> None:
    """Removes a note; its writer and the project's admins may."""
    found = _find(tx, caller, kind, reference)
    note = notes.find(tx, caller.project_id, note_id)
    if note is None or note.artifact_id != found.id:
        raise NotFound(f"{found.name} has no note {note_id[:80]!r}")
    if note.user_id != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied(f"this note is {note.user}'s: they and admins of this project may remove it")
    notes.remove(tx, note.id)
    _tell(tx, caller, "note.removed", found, note)


def _find(tx: Tx, caller: Caller, kind: Kind, reference: str) -> Artifact:
    """Returns the thing; a job may be named by the end of its id, and not by those who may not read its files."""
    if kind is Kind.JOB:
        reference = need_job(tx, caller, reference).id
    return find_artifact(tx, caller, rights_of(tx, caller), kind, reference)


def _tell(tx: Tx, caller: Caller, event: str, found: Artifact, note: ArtifactNote) -> None:
    subject = found.name if found.kind is Kind.JOB else f"{found.name}:{found.version}"
    body = {"kind": found.kind.value, "note": note.id}
    tx.emit(event, subject[:200], project_id=caller.project_id, actor=caller.user.id, body=body)

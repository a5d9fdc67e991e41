"""Notes on jobs, models (file sets) and files."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from easel.declare.verbs import Verb
from easel.flow.lake import notes
from easel.records import lake as records
from easel.records.note import ArtifactNote
from easel.serve.access import Member, State, acts
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import lake as wire

router = Router(prefix="/api/v1/projects/{project}/notes", tags=["artifacts"])

Of = Annotated[wire.Kind, Query(description="job, fileset (a model is one) or file")]
Ref = Annotated[str, Query(max_length=1100, examples=["digits-model:6"])]


def _shown(note: ArtifactNote) -> wire.ArtifactNote:
    return wire.ArtifactNote(id=note.id, user=note.user, text=note.text, written_at=note.written_at)


@router.get("", response_model=wire.Notes)
def list_notes(state: State, caller: Member, kind: Of, ref: Ref) -> wire.Notes:
    """What people wrote about a job, a file set or a file, oldest first."""
    with state.store.read() as tx:
        found = notes.notes_on(tx, caller, records.Kind(kind.value), ref)
    return wire.Notes(items=[_shown(note) for note in found])


@router.post("", response_model=wire.ArtifactNote, status_code=201)
@acts(Verb.WRITE)
def write_note(caller: Member, create: Create, body: wire.WriteNote) -> Response:
    """Write a note on something that you may change."""

    def make(tx: Tx) -> wire.ArtifactNote:
        return _shown(notes.write_note(tx, caller, records.Kind(body.kind.value), body.ref, body.text))

    return create(caller, body, make)


@router.delete("/{note}", status_code=204)
@acts(Verb.WRITE)
def remove_note(
    state: State, caller: Member, note: Annotated[str, Path(max_length=80)], kind: Of, ref: Ref
) -> None:
    """Remove a note: your own, or as an admin of the project anybody's."""
    with state.store.write() as tx:
        notes.remove_note(tx, caller, records.Kind(kind.value), ref, note)

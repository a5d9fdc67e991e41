"""Who did what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from easel.flow.audit.read import entries_after, list_entries
from easel.flow.audit.verify import verify
from easel.records.audit import ChainedEntry, plain
from easel.serve.access import PlatformAdmin, ProjectAdmin, State
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.wire.audit import AuditEntry, AuditVerdict
from easel.wire.model import Page

router = Router(prefix="/api/v1", tags=["audit"])


@router.get("/audit", response_model=Page[AuditEntry])
def audit_entries(state: State, caller: PlatformAdmin, page: Paging) -> Page[AuditEntry]:
    """Who did what on this installation, newest first; filter by actor, project, route, outcome, time …"""
    state.audit.flush()
    with state.store.read() as tx:
        found = list_entries(tx, page, None)
    return Page(items=[_shown(each) for each in found.items], next_cursor=found.next_cursor)


@router.get("/projects/{project}/audit", response_model=Page[AuditEntry])
def project_audit(state: State, caller: ProjectAdmin, page: Paging) -> Page[AuditEntry]:
    """Who did what in this project, newest first."""
    state.audit.flush()
    with state.store.read() as tx:
        found = list_entries(tx, page, caller.project_id)
    return Page(items=[_shown(each) for each in found.items], next_cursor=found.next_cursor)


@router.get("/audit/export", response_class=StreamingResponse)
def export_audit(
    state: State,
    caller: PlatformAdmin,
    after: Annotated[int, Query(ge=0, lt=2**63, description="Only entries after this number")] = 0,
) -> Response:
    """The audit as JSON lines, oldest first, with the hashes by which anybody can check it."""
    state.audit.flush()
    return StreamingResponse(_lines(state, after), media_type="application/jsonl")


@router.get("/audit/verify", response_model=AuditVerdict)
def verify_audit(
    state: State,
    caller: PlatformAdmin,
    seq: Annotated[
        int | None, Query(ge=1, lt=2**63, description="Number of an entry noted elsewhere")
    ] = None,
    known: Annotated[str | None, Query(alias="hash", max_length=64, description="Its hash")] = None,
) -> AuditVerdict:
    """Check that no entry was changed, removed or put in; with a hash noted elsewhere also that all was not redone."""
    state.audit.flush()
    witness = (seq, known) if seq is not None and known else None
    found = verify(state.store, witness)
    return AuditVerdict(
        whole=found.whole,
        entries=found.entries,
        first=found.first,
        last=found.last,
        hash=found.hash,
        broken_at=found.broken_at,
        why=found.why,
    )


def _lines(state: AppState, after: int) -> Iterator[bytes]:
    for found in entries_after(state.store, after):
        yield b"".join(_line(each) for each in found)


def _line(each: ChainedEntry) -> bytes:
    return json.dumps({"seq": each.seq, **plain(each.entry), "hash": each.hash}).encode() + b"\n"


def _shown(each: ChainedEntry) -> AuditEntry:
    return AuditEntry(seq=each.seq, hash=each.hash, **plain(each.entry))

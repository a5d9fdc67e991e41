"""What the audit notes of each request: who, from where, with which token, and what came of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from starlette.types import Scope

from easel.flow.audit.log import AuditLog
from easel.flow.audit.sheets import Sheets
from easel.flow.audit.syslog import SyslogSender
from easel.records.audit import AuditEntry, AuditOutcome
from easel.records.identity import Caller
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.identity import Credential
from easel.store.noting import RequestNote, noted

NOT_AUDITED = frozenset({"/healthz", "/readyz", "/v2", "/v2/health/live", "/v2/health/ready"})
"""Routes that change nothing and tell nothing of anybody: whether the server is alive."""
SOCKET = "WEBSOCKET"
"""The method of a websocket's entry."""
_REFUSALS = frozenset({401, 403, 429})
_WITH_QUERY = "/api/v1/projects/"
"""Below it a query says which file or set was read, and holds no secret."""
_LONGEST = 500


def open_audit(settings: Settings, store: Store) -> AuditLog:
    keep = timedelta(days=settings.audit_keep_days) if settings.audit_keep_days else None
    sender = SyslogSender(settings.audit_syslog) if settings.audit_syslog else None
    return AuditLog(store, keep=keep, sender=sender, sheets=Sheets(settings.folder / "run" / "audit"))


def begin_note(scope: Scope, request_id: str) -> RequestNote:
    """What is known when a request comes. The key is ours: a client may send any request id twice."""
    client = scope.get("client")
    path: str = scope["path"]
    query: bytes = scope.get("query_string", b"")
    if query and path.startswith(_WITH_QUERY):
        path = f"{path}?{query.decode('latin-1')}"
    address = client[0] if client else "unknown"
    method: str = scope.get("method", SOCKET)
    return RequestNote(f"{id(scope):x}-{request_id}"[:64], address[:64], method[:10], "", path[:_LONGEST])


def is_audited(scope: Scope) -> bool:
    """Whether the request met a route of ours that is not in `NOT_AUDITED`."""
    route = getattr(scope.get("route"), "path", None)
    return route is not None and route not in NOT_AUDITED


def entry_of(scope: Scope, note: RequestNote, status: int, now: datetime) -> AuditEntry:
    if note.refused or status in _REFUSALS:
        outcome = AuditOutcome.REFUSED
    else:
        outcome = AuditOutcome.ALLOWED if status < 400 else AuditOutcome.FAILED
    return AuditEntry(
        at=now,
        actor=note.actor,
        actor_name=note.actor_name,
        token=note.token,
        project_id=note.project_id,
        address=note.address,
        method=note.method,
        route=scope["route"].path[:200],
        path=note.path,
        status=status,
        outcome=outcome,
        request_id=scope["easel.request_id"],
    )


def note_route(path: str) -> None:
    note = noted.get()
    if note is not None:
        note.route = path[:200]


def note_credential(found: Credential) -> None:
    note = noted.get()
    if note is not None:
        note.actor, note.actor_name, note.token = found.user.id, found.user.name, found.token_id
        note.project_id = found.project.id if found.project else None


def note_caller(caller: Caller, token: str | None = None) -> None:
    note = noted.get()
    if note is not None:
        note.actor, note.actor_name = caller.user.id, caller.user.name
        note.token = token or caller.token_id
        note.project_id = caller.project.id if caller.project else None


def note_worker(secret_hash: str) -> None:
    note = noted.get()
    if note is not None:
        note.token = f"worker:{secret_hash[:16]}"


def note_refusal(status: int | None = None) -> None:
    """Notes that the caller may not; with a `status` where the answer that leaves does not say it."""
    note = noted.get()
    if note is not None:
        note.refused, note.status = True, status


def note_failure(status: int) -> None:
    """Notes what came of a websocket that is opened only to say so."""
    note = noted.get()
    if note is not None:
        note.status = status

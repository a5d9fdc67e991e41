"""Queries on the audit: append to the chain, read it, remove what is too old."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from easel.declare.page import PageRequest
from easel.ids import ProjectId
from easel.records.audit import FIRST_HASH, AuditEntry, AuditOutcome, ChainedEntry, link
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.audit import audit, audit_head, audit_pending
from easel.store.upsert import lock

AUDIT = Collection(
    {
        name: audit.c[name]
        for name in (
            "seq",
            "at",
            "actor",
            "actor_name",
            "token",
            "project_id",
            "address",
            "method",
            "route",
            "path",
            "status",
            "outcome",
            "request_id",
        )
    },
    "seq",
    "-seq",
)
# Built once: building a statement costs several times as much as running it.
_INSERT = insert(audit)
_HEAD = select(*(c for c in audit_head.c if c.name != "id"))
_SET_HEAD = update(audit_head).where(audit_head.c.id == 1)
_FORGET = delete(audit_pending).where(audit_pending.c.key == bindparam("kept_as"))


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The end of the chain; the hash and number of the last entry that was removed; the last one sent on."""

    seq: int = 0
    hash: str = FIRST_HASH
    trimmed_seq: int = 0
    trimmed_hash: str = FIRST_HASH
    sent_seq: int = 0


def head(tx: Tx) -> ChainEnd:
    row = tx.execute(_HEAD).one_or_none()
    return ChainEnd() if row is None else ChainEnd(*row)


def append(tx: Tx, entries: Sequence[AuditEntry], pending: Sequence[str] = ()) -> None:
    """Chain entries, and forget the pending ones of these keys: they are among them."""
    lock(tx, "audit")  # one writer of the chain at a time, in whichever process
    end = head(tx)
    rows, seq, last = [], end.seq, end.hash
    for entry in entries:
        seq += 1
        last = link(last, seq, entry)
        rows.append(_row(seq, entry, last))
    if rows:
        tx.execute(_INSERT, rows)
    if pending:
        tx.execute(_FORGET, [{"kept_as": key} for key in pending])
    _set_head(tx, ChainEnd(seq, last, end.trimmed_seq, end.trimmed_hash, end.sent_seq))


def orphans(tx: Tx, before: datetime) -> list[tuple[str, AuditEntry]]:
    """Entries of changes whose request was never answered: their server ended."""
    query = select(audit_pending).where(audit_pending.c.at < before).order_by(audit_pending.c.at)
    return [
        (
            row.key,
            AuditEntry(
                at=row.at,
                status=0,
                outcome=AuditOutcome.UNANSWERED,
                request_id=row.key[:64],
                **dict(row.entry),
            ),
        )
        for row in tx.execute(query)
    ]


def is_chained(tx: Tx, entry: AuditEntry) -> bool:
    """Whether the chain has this entry of a request."""
    same = (audit.c.at == entry.at, audit.c.request_id == entry.request_id, audit.c.path == entry.path)
    return tx.execute(select(audit.c.seq).where(*same).limit(1)).one_or_none() is not None


def list_entries(tx: Tx, request: PageRequest, project_id: ProjectId | None) -> Page[ChainedEntry]:
    query = select(*audit.c)
    if project_id is not None:
        query = query.where(audit.c.project_id == project_id)
    return fetch(tx, query, AUDIT, request).map(_chained)


def entries_after(tx: Tx, seq: int, limit: int = 1000) -> list[ChainedEntry]:
    query = select(*audit.c).where(audit.c.seq > seq).order_by(audit.c.seq).limit(limit)
    return [_chained(row) for row in tx.execute(query)]


def walk(tx: Tx, after: int = 0) -> Iterator[ChainedEntry]:
    """Every entry in order."""
    while found := entries_after(tx, after):
        yield from found
        after = found[-1].seq


def trim(tx: Tx, before: datetime) -> int:
    """Remove entries older than `before` from the beginning of the chain; returns how many."""
    lock(tx, "audit")
    end = head(tx)
    first_kept = tx.execute(select(func.min(audit.c.seq)).where(audit.c.at >= before)).scalar_one()
    last = (first_kept - 1) if first_kept is not None else end.seq
    row = tx.execute(select(audit.c.hash).where(audit.c.seq == last)).one_or_none()
    if row is None or last <= end.trimmed_seq:
        return 0
    _set_head(tx, ChainEnd(end.seq, end.hash, last, row.hash, max(end.sent_seq, last)))
    return tx.execute(delete(audit).where(audit.c.seq <= last)).rowcount


def mark_sent(tx: Tx, seq: int) -> None:
    tx.execute(update(audit_head).values(sent_seq=seq))


def _set_head(tx: Tx, new: ChainEnd) -> None:
    values = {name: getattr(new, name) for name in ("seq", "hash", "trimmed_seq", "trimmed_hash", "sent_seq")}
    if tx.execute(_SET_HEAD, values).rowcount == 0:
        tx.execute(insert(audit_head).values(id=1, **values))


def _row(seq: int, entry: AuditEntry, digest: str) -> dict[str, Any]:
    return {
        "seq": seq,
        "at": entry.at,
        "actor": entry.actor,
        "actor_name": entry.actor_name,
        "token": entry.token,
        "project_id": entry.project_id,
        "address": entry.address,
        "method": entry.method,
        "route": entry.route,
        "path": entry.path,
        "status": entry.status,
        "outcome": entry.outcome.value,
        "count": entry.count,
        "request_id": entry.request_id,
        "hash": digest,
    }


def _chained(row: AnyRow) -> ChainedEntry:
    values = dict(row._mapping)
    seq, digest = values.pop("seq"), values.pop("hash")
    return ChainedEntry(seq, AuditEntry(**{**values, "outcome": AuditOutcome(values["outcome"])}), digest)

"""One entry of the audit, and the hash that chains it to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

FIRST_HASH = "0" * 64
"""What stands before the first entry."""


class AuditOutcome(StrEnum):
    ALLOWED = "allowed"
    REFUSED = "refused"
    """The caller may not: wrong token, missing right, foreign project, too many."""
    FAILED = "failed"
    """The caller may, but it did not work: wrong input, conflict, error."""
    UNANSWERED = "unanswered"
    """The change was committed, and the server ended before it answered."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what, from where, with which token. `count` equal reads in a moment are one entry."""

    at: datetime
    actor: str | None
    actor_name: str | None
    token: str | None
    project_id: str | None
    address: str
    method: str
    route: str
    path: str
    status: int
    outcome: AuditOutcome
    request_id: str
    count: int = 1

    def again(self, times: int) -> AuditEntry:
        return replace(self, count=self.count + times)


@dataclass(frozen=True, slots=True)
class ChainedEntry:
    seq: int
    entry: AuditEntry
    hash: str


_FIELDS = tuple(each.name for each in fields(AuditEntry))


def plain(entry: AuditEntry) -> dict[str, Any]:
    found = {name: getattr(entry, name) for name in _FIELDS}
    found["at"], found["outcome"] = entry.at.isoformat(), entry.outcome.value
    return found


# One encoder for all entries: building one for each takes longer than what it writes.
_spell = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def link(before: str, seq: int, entry: AuditEntry) -> str:
    """The hash of an entry: SHA-256 over the hash before it, its number and its fields in a fixed spelling."""
    said = _spell({"seq": seq, **plain(entry)})
    return hashlib.sha256(f"{before}\n{said}".encode()).hexdigest()

"""One entry of the audit, and the hash that chains it to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
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


def plain(entry: AuditEntry) -> dict[str, Any]:
    return {**asdict(entry), "at": entry.at.isoformat(), "outcome": entry.outcome.value}


def link(before: str, seq: int, entry: AuditEntry) -> str:
    """The hash of an entry: SHA-256 over the hash before it, its number and its fields in a fixed spelling."""
    said = json.dumps({"seq": seq, **plain(entry)}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"{before}\n{said}".encode()).hexdigest()

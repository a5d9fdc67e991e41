"""Who did what: a chain of entries that only grows, and what waits to join it."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, Table, Text

from easel.store.schema.metadata import Moment, metadata

# Triggers refuse every UPDATE, and a DELETE of what `audit_head` does not call trimmed.
audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("actor", String(40)),
    Column("actor_name", String(64)),
    Column("token", String(40)),
    Column("project_id", String(40)),
    Column("address", String(64), nullable=False),
    Column("method", String(10), nullable=False),
    Column("route", String(200), nullable=False),
    Column("path", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("outcome", String(12), nullable=False),
    Column("count", Integer, nullable=False),
    Column("request_id", String(64), nullable=False),
    # SHA-256 over the hash of the entry before and this entry.
    Column("hash", String(64), nullable=False),
    Index(None, "at", "seq"),
    Index(None, "actor", "seq"),
    Index(None, "project_id", "seq"),
)

# The entry of a change, committed with the change itself, until the chain has it.
audit_pending = Table(
    "audit_pending",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("entry", JSON, nullable=False),
)

# One row: the end of the chain, where it begins since old entries were removed, and what syslog has.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("trimmed_seq", BigInteger, nullable=False),
    Column("trimmed_hash", String(64), nullable=False),
    Column("sent_seq", BigInteger, nullable=False),
)

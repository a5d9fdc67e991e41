"""The append-only history, and the leases that say which process does a singular job."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, String, Table

from easel.store.schema.metadata import BigSerial, Moment, metadata

events = Table(
    "events",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("project_id", String(40)),
    Column("actor", String(40)),
    Column("body", JSON, nullable=False),
    Index(None, "project_id", "seq"),
    Index(None, "subject", "seq"),
    sqlite_autoincrement=True,
)

# `fence` grows with each new holder; work done under an older fence is refused.
leases = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(100), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

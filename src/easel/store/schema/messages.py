"""Ways to reach people, and the outbox."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Index, Integer, String, Table, Text, text

from easel.store.schema.metadata import BigSerial, Moment, metadata

_WAITING = text("state = 'waiting'")

# `address` is encrypted where it is a secret (Slack, Matrix): whoever has it may write there.
message_channels = Table(
    "message_channels",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("user_id", String(40), nullable=False),
    Column("way", String(8), nullable=False),
    Column("address", Text, nullable=False),
    Column("topics", JSON, nullable=False),
    Column("zone", String(64), nullable=False),
    Column("quiet_start", Integer),
    Column("quiet_end", Integer),
    Column("digest_at", Integer),
    Column("stopped", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "user_id"),
)

# Written with the event that it is about; `due_at` moves on with each try that failed.
outbox = Table(
    "outbox",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("channel_id", String(40), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("project", String(64)),
    Column("body", JSON, nullable=False),
    Column("at", Moment, nullable=False),
    Column("due_at", Moment, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("state", String(8), nullable=False),
    Column("error", Text),
    Index(None, "channel_id", "seq"),
    Index("ix_outbox_due", "due_at", postgresql_where=_WAITING, sqlite_where=_WAITING),
    sqlite_autoincrement=True,
)

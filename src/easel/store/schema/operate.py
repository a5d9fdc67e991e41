"""What an installation does by itself: backups, and what is given up when it is old."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text

from easel.store.schema.metadata import BigSerial, Moment, metadata

# One row at most: where backups go, how often, and how many are kept.
backup_plans = Table(
    "backup_plans",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("target", Text, nullable=False),
    Column("every_s", Integer, nullable=False),
    Column("keep", Integer, nullable=False),
    Column("asked", Boolean, nullable=False),
    Column("since", Moment, nullable=False),
)

# `ended_at` is empty while one is being made, and for ever where its maker died.
backup_runs = Table(
    "backup_runs",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("target", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("name", String(40)),
    Column("rows", Integer),
    Column("blobs", Integer),
    Column("damaged", Integer),
    Column("error", Text),
)

# What a project gives up by itself: `what` is logs, events or outputs; `tag` is empty, `key` or `key=value`.
retention_rules = Table(
    "retention_rules",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("what", String(8), nullable=False),
    Column("older_than_days", Float(53), nullable=False),
    Column("tag", String(200), nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("applied_at", Moment),
    Index(None, "project_id"),
)

# What a project, or with a user_id one person in it, may hold and use; empty means without limit.
quotas = Table(
    "quotas",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("user_id", String(40), primary_key=True),
    Column("bytes", BigInteger),
    Column("gpu_hours", Float(53)),
    Column("jobs", Integer),
)

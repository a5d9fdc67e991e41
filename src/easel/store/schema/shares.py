"""What projects and users have used of the pool, and the weights that it is held against."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, String, Table

from easel.store.schema.metadata import Moment, metadata

# An empty user_id is the project itself, which has weight and priority alone. `usage` is in core-seconds as of
# `used_at`; it fades from there.
shares = Table(
    "shares",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("user_id", String(40), primary_key=True),
    Column("usage", Float(53), nullable=False),
    Column("used_at", Moment, nullable=False),
    Column("weight", Float(53), nullable=False),
    Column("priority", Integer, nullable=False),
)

# The least share of the pool's cores that a kind of work gets before others, while it waits for any.
pool_shares = Table(
    "pool_shares",
    metadata,
    Column("kind", String(20), primary_key=True),
    Column("least", Float(53), nullable=False),
    Column("set_by", String(40), nullable=False),
    Column("set_at", Moment, nullable=False),
)

# A device that only one project's jobs begin on, for a while.
reservations = Table(
    "reservations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("device", String(100), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("start_at", Moment, nullable=False),
    Column("end_at", Moment, nullable=False),
    Column("made_by", String(40), nullable=False),
    Column("made_at", Moment, nullable=False),
    Index(None, "end_at"),
)

"""What projects and users have used of the pool, and the weights that it is held against."""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, String, Table

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

"""Tenants of the pool (apps and studies): their terms and turns; and what every trial of an app came to."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, String, Table, Text, false

from easel.store.schema.metadata import BigSerial, Moment, metadata

# `served_at` is the turn at which the tenant joined or was last served; none before it joined.
tenants = Table(
    "tenants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("weight", Float(53), nullable=False, server_default="1"),
    Column("deadline", Moment),
    Column("budget_micros", BigInteger),
    Column("until", Float(53)),
    Column("paused_at", Moment),
    Column("paused_by", String(40)),
    # Somebody asked for more although little is expected of it, and it was not served since.
    Column("asked", Boolean, nullable=False, server_default=false()),
    Column("served_at", Integer),
)

# One row: how many trials were ever started, and up to which result of `trial_history` beliefs are learned.
pool_turns = Table(
    "pool_turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, nullable=False),
    Column("as_of", BigInteger, nullable=False),
)

# The most that members of a project may ask for, as an admin set it.
tenant_limits = Table(
    "tenant_limits",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("max_weight", Float(53)),
    Column("max_budget_micros", BigInteger),
)

# Scores and times by candidate, in the order in which they came. They outlive their apps: nothing in them tells
# of anybody's data.
trial_history = Table(
    "trial_history",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("app_id", String(40), nullable=False),
    Column("metric", String(40), nullable=False),
    Column("candidate", Text, nullable=False),
    Column("family", String(60), nullable=False),
    Column("promise", Float(53), nullable=False),
    Column("guess_s", Float(53), nullable=False),
    Column("quality", Float(53)),
    Column("seconds", Float(53), nullable=False),
    Column("peak_mb", Float(53)),
    Column("examples", Integer, nullable=False),
    # How far this slice of a trial came; `seconds` are its own.
    Column("share", Float(53), nullable=False, server_default="1"),
    # The kind of GPU on which it ran, its seconds there, and how often it ran out of that one's memory.
    Column("kind", String(80), nullable=False, server_default=""),
    Column("kind_s", Float(53)),
    Column("halved", Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)

"""Prices, bills, budgets; profiles with their models, and what the provisioner promised."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text

from easel.store.schema.metadata import BigSerial, Moment, metadata

# The history of prices, for the whole installation.
prices = Table(
    "prices",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("since", Moment, nullable=False),
    Column("book", JSON, nullable=False),
    Column("actor", String(40)),
)

# One row a line; an attempt that was tried again has lines of its own.
bill_lines = Table(
    "bill_lines",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("app", String(100), nullable=False),
    Column("month", String(7), nullable=False),
    Column("start", Moment, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("per_hour", Float(53), nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("currency", String(8), nullable=False),
    Column("book", String(100), nullable=False),
    Index(None, "project_id", "month"),
)

# `warned` are the shares announced in `warned_in`, a month or `total`.
budgets = Table(
    "budgets",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("limit_micros", BigInteger, nullable=False),
    Column("period", String(8), nullable=False),
    Column("warn_at", JSON, nullable=False),
    Column("hard_stop", Boolean, nullable=False),
    Column("warned_in", String(8), nullable=False),
    Column("warned", JSON, nullable=False),
)

# Each row is one version of what is known about a template; `runs` are what its model was fitted to.
profiles = Table(
    "profiles",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("name", String(100), nullable=False),
    Column("version", Integer, nullable=False),
    Column("template", Text, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("state", String(8), nullable=False),
    Column("reason", Text),
    Column("runs", JSON, nullable=False),
    Column("runtime", JSON),
    Column("memory", JSON),
    Column("created_at", Moment, nullable=False),
    Column("fitted_at", Moment),
    Index(None, "project_id", "name", "version", unique=True),
    Index("ix_profiles_state", "state"),
)

profile_runs = Table(
    "profile_runs",
    metadata,
    Column("profile_id", String(40), primary_key=True),
    Column("job_id", String(40), primary_key=True),
    Column("features", JSON, nullable=False),
)

# What was promised for a provisioned job; `seconds` and `micros` are what it took, once it is over.
provisions = Table(
    "provisions",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("profile_id", String(40), nullable=False),
    Column("features", JSON, nullable=False),
    Column("wish", JSON, nullable=False),
    Column("promised_seconds", Float(53), nullable=False),
    Column("low_seconds", Float(53), nullable=False),
    Column("high_seconds", Float(53), nullable=False),
    Column("promised_micros", BigInteger, nullable=False),
    Column("seconds", Float(53)),
    Column("micros", BigInteger),
    Column("compared_at", Moment),
    Index(None, "project_id"),
    Index("ix_provisions_compared", "compared_at"),
)

# What a job that waited was told: when it would probably start, and by when it would have ended with a probability of
# 80, 90 and 95 %. Empty where that was never.
promises = Table(
    "promises",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("made_at", Moment, nullable=False),
    Column("start_at", Moment),
    Column("end_80", Moment),
    Column("end_90", Moment),
    Column("end_95", Moment),
    # What was forecast, in seconds: [start, end, end at 80, 90 and 95 %]; what was told is corrected by experience.
    Column("forecast", JSON),
    Index(None, "project_id", "made_at"),
)

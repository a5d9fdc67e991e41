"""Jobs, what they logged and measured, their queues, pipelines, and the devices they run on."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    literal_column,
    text,
)

from easel.store.schema.metadata import BigSerial, Moment, metadata

STATES = ("queued", "launching", "downloading", "running", "uploading", "finished", "failed", "killed")
_ACTIVE = text("state IN ('launching', 'downloading', 'running', 'uploading')")
_QUEUED = text("state = 'queued'")

# `seq` gives the order of arrival, whatever the clock says; `rank` is what an admin changed about it.
# `revision` grows with each change: whoever changes a job names the revision that it saw.
jobs = Table(
    "jobs",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False, unique=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("name", String(100), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("spec", JSON, nullable=False),
    Column("state", String(12), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    # Steps of a pipeline that must end before this one may start.
    Column("blocked", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    # Entries of the current attempt's journal that are part of what stands here.
    Column("applied", BigInteger, nullable=False),
    Column("kill_requested", Boolean, nullable=False),
    Column("exit_code", Integer),
    Column("reason", Text),
    Column("result", JSON),
    Column("usage", JSON),
    Column("progress", Float(53)),
    Column("log_lines", BigInteger, nullable=False),
    Column("log_bytes", BigInteger, nullable=False),
    Column("artifact_id", BigInteger),
    Column("code_set", Text),
    Column("input_set", Text),
    Column("input_id", BigInteger),
    Column("output_set", Text),
    Column("output_id", BigInteger),
    # Tags that the job's log gave to its output, until there is one.
    Column("set_tags", JSON),
    Column("parent_id", String(40)),
    Column("pipeline_id", String(40)),
    Column("step", String(100)),
    # Of what runs on which versions: equal signatures mean equal work.
    Column("signature", String(64)),
    Column("device", String(100)),
    Column("submitted_at", Moment, nullable=False),
    Column("launched_at", Moment),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    CheckConstraint(f"state IN ({', '.join(map(repr, STATES))})", name="state"),
    Index("ix_jobs_project_seq", "project_id", "seq"),
    # What people sort and filter a hundred thousand of them by.
    Index("ix_jobs_project_state", "project_id", "state", "seq"),
    Index("ix_jobs_project_name", "project_id", "name", "seq"),
    Index("ix_jobs_project_submitted", "project_id", "submitted_at", "seq"),
    Index("ix_jobs_project_user", "project_id", "user_id", "seq"),
    Index("ix_jobs_pipeline", "pipeline_id"),
    Index("ix_jobs_signature", "project_id", "signature"),
    Index(
        "ix_jobs_queue",
        "project_id",
        "user_id",
        "blocked",
        "rank",
        "seq",
        postgresql_where=_QUEUED,
        sqlite_where=_QUEUED,
    ),
    Index("ix_jobs_active", "project_id", "user_id", postgresql_where=_ACTIVE, sqlite_where=_ACTIVE),
)

# The conditions of the partial indexes above, word for word: with a parameter instead, SQLite does not see that
# a query asks for nothing else, and reads the whole table.
IS_QUEUED = jobs.c.state == literal_column("'queued'")
IS_ACTIVE = jobs.c.state.in_(
    [literal_column(f"'{state}'") for state in ("launching", "downloading", "running", "uploading")]
)

job_needs = Table(
    "job_needs",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("needs", String(40), primary_key=True),
    Index(None, "needs"),
)

# Chunks of whole lines, compressed. `number` is the journal entry, `first_line` counts from 0 over the attempt.
job_logs = Table(
    "job_logs",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("first_line", BigInteger, nullable=False),
    Column("lines", BigInteger, nullable=False),
    Column("stream", String(8), nullable=False),
    Column("at", Moment, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# `value` is NULL for what is no number; `text` then says which: nan, inf or -inf.
job_metrics = Table(
    "job_metrics",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53)),
    Column("text", String(4)),
    Column("at", Moment, nullable=False),
)

# One row a series. `closed` points, up to step `closed_to`, are in blocks; about `open` came since.
job_series = Table(
    "job_series",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("closed_to", BigInteger),
    Column("closed", BigInteger, nullable=False),
    Column("open", BigInteger, nullable=False),
)

# The extremes of points that follow each other; `odd_step` is the first that is no number.
job_series_blocks = Table(
    "job_series_blocks",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("last", BigInteger, nullable=False),
    Column("points", Integer, nullable=False),
    Column("low_step", BigInteger),
    Column("low", Float(53)),
    Column("high_step", BigInteger),
    Column("high", Float(53)),
    Column("odd_step", BigInteger),
)

# An empty user_id holds the project's own settings. `served` is the turn of its last launch.
job_queues = Table(
    "job_queues",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("user_id", String(40), primary_key=True),
    Column("max_active", Integer),
    Column("paused", Boolean, nullable=False),
    Column("served", BigInteger, nullable=False),
)

pipelines = Table(
    "pipelines",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("name", String(100), nullable=False),
    Column("spec", JSON, nullable=False),
    Column("parent_id", String(40)),
    Column("created_at", Moment, nullable=False),
    Index(None, "project_id", "created_at"),
)

devices = Table(
    "devices",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("executor", String(20), nullable=False),
    Column("vcpu", Float(53), nullable=False),
    Column("memory_mb", BigInteger, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("connected", Boolean, nullable=False),
    Column("seen_at", Moment, nullable=False),
)

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
    and_,
    false,
    literal_column,
    text,
)

from easel.store.schema.metadata import BigSerial, Moment, metadata

STATES = ("queued", "launching", "downloading", "running", "uploading", "finished", "failed", "killed")
# A free run is only recorded: whatever its state, no queue and no executor has it.
_ACTIVE = text("state IN ('launching', 'downloading', 'running', 'uploading') AND kind <> 'free'")
_QUEUED = text("state = 'queued' AND kind <> 'free'")
_UNBILLED = text("billed = false")

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
    # A slice that was asked to stop at its next checkpoint, for somebody with a better claim.
    Column("give_way", Boolean, nullable=False, server_default=false()),
    Column("exit_code", Integer),
    # Why it ended, for code to compare; `reason` is the sentence for people.
    Column("end_reason", String(20)),
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
    # One that is tried again waits until then.
    Column("not_before", Moment),
    Column("launched_at", Moment),
    # Of the current attempt, by its own journal: since when it holds a device, and its latest entry.
    Column("held_at", Moment),
    Column("heard_at", Moment),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    # The experiment of its project that it belongs to; every project has number 0.
    Column("experiment", Integer, nullable=False, server_default="0"),
    Column("deleted_at", Moment),
    CheckConstraint(f"state IN ({', '.join(map(repr, STATES))})", name="state"),
    Index("ix_jobs_project_seq", "project_id", "seq"),
    # What people sort and filter a hundred thousand of them by.
    Index("ix_jobs_project_state", "project_id", "state", "seq"),
    Index("ix_jobs_project_name", "project_id", "name", "seq"),
    Index("ix_jobs_project_submitted", "project_id", "submitted_at", "seq"),
    Index("ix_jobs_project_user", "project_id", "user_id", "seq"),
    Index(
        "ix_jobs_experiment",
        "project_id",
        "experiment",
        "submitted_at",
        postgresql_include=["id", "artifact_id", "attempt", "deleted_at"],
    ),
    Index("ix_jobs_artifact", "artifact_id"),
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
_OF_THE_ENGINE = jobs.c.kind != literal_column("'free'")
IS_QUEUED = and_(jobs.c.state == literal_column("'queued'"), _OF_THE_ENGINE)
IS_ACTIVE = and_(
    jobs.c.state.in_(
        [literal_column(f"'{state}'") for state in ("launching", "downloading", "running", "uploading")]
    ),
    _OF_THE_ENGINE,
)

# Attempts that are over, one row each, written with the end of each. `seconds` is how long it held a device, by its own
# journal; of a lost one until the last thing known of it.
job_attempts = Table(
    "job_attempts",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("job_id", String(40), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("device", String(100)),
    Column("held_at", Moment),
    Column("started_at", Moment),
    Column("ended_at", Moment, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("state", String(12), nullable=False),
    Column("end_reason", String(20)),
    Column("reason", Text),
    Column("exit_code", Integer),
    Column("log_lines", BigInteger, nullable=False),
    Column("billed", Boolean, nullable=False),
    Index(None, "job_id", "attempt", unique=True),
    Index("ix_job_attempts_ended", "ended_at"),
    Index("ix_job_attempts_unbilled", "seq", postgresql_where=_UNBILLED, sqlite_where=_UNBILLED),
)
IS_UNBILLED = job_attempts.c.billed == literal_column("false")

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

# Cells of notebooks as they stand, compressed; cell -1 is the notebook as it began. `number` is the journal entry.
job_cells = Table(
    "job_cells",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("cell", Integer, primary_key=True, autoincrement=False),
    Column("state", String(12), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("at", Moment, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# `value` is NULL for what is no number; `text` then says which: nan, inf or -inf. One point a step: whoever may log
# several at a step (MLflow's clients do) has the others in `job_metric_repeats`.
job_metrics = Table(
    "job_metrics",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(250), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53)),
    Column("text", String(4)),
    Column("at", Moment, nullable=False),
)

# Further points at a step that has one. `mark` is made of the value: the same point sent twice is one point.
job_metric_repeats = Table(
    "job_metric_repeats",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(250), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, primary_key=True),
    Column("mark", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53)),
    Column("text", String(4)),
)

# One row a series. `closed` points, up to step `closed_to`, are in blocks; about `open` came since.
# `last` is the value at the greatest step (there the newest; infinities are the largest numbers); `low` and `high` are
# of all that was ever logged.
job_series = Table(
    "job_series",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(250), primary_key=True),
    Column("closed_to", BigInteger),
    Column("closed", BigInteger, nullable=False),
    Column("open", BigInteger, nullable=False),
    Column("project_id", String(40)),
    Column("last_step", BigInteger),
    Column("last_at", Moment),
    Column("last", Float(53)),
    Column("last_text", String(4)),
    Column("low", Float(53)),
    Column("high", Float(53)),
    Column("artifact_id", BigInteger),
    Index("ix_job_series_last", "project_id", "name", "last", "artifact_id", postgresql_include=["attempt"]),
    Index(
        "ix_job_series_artifact",
        "artifact_id",
        "name",
        postgresql_include=["attempt", "last", "project_id"],
    ),
)

# The extremes of points that follow each other; `odd_step` is the first that is no number.
job_series_blocks = Table(
    "job_series_blocks",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String(250), primary_key=True),
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

# What a requirements file was locked to: each device with the same Python builds the same versions.
environments = Table(
    "environments",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("asked", String(64), primary_key=True),
    Column("lock", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("python", String(40), nullable=False),
    Column("packages", JSON, nullable=False),
    Column("job_id", String(40), nullable=False),
    Column("made_at", Moment, nullable=False),
    Index(None, "project_id", "name"),
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
    # Since when it gets no more work, until when what it has may run, and why.
    Column("drain_since", Moment),
    Column("drain_by", Moment),
    Column("drain_reason", Text),
)

"""Work that is pulled rather than pushed: what waits for workers, who they are, and what they reported."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text, false

from easel.store.schema.metadata import BigSerial, Moment, metadata

# Not among `tokens`: a worker's secret opens the worker's routes and nothing else, whatever a query forgets.
worker_tokens = Table(
    "worker_tokens",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("secret_hash", String(64), nullable=False, unique=True),
    Column("made_by", String(40)),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("last_used_at", Moment),
)

# A device that pulls. `session` grows with each process that takes its name; `beats` with each exchange.
workers = Table(
    "workers",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("executor", String(20), nullable=False),
    Column("token_id", String(40), nullable=False),
    Column("session", BigInteger, nullable=False),
    Column("beats", BigInteger, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("address", String(100), nullable=False),
    Column("left", Boolean, nullable=False),
)

# The largest fence under which an executor was driven: an older controller is refused.
pools = Table(
    "pools",
    metadata,
    Column("executor", String(20), primary_key=True),
    Column("fence", BigInteger, nullable=False),
)

# One attempt that an executor holds, or one of `size` members of one. `sealed` is the order, encrypted with the
# key of the installation because it holds secrets. `known` says that the device has said it has it.
work = Table(
    "work",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("key", String(60), nullable=False, unique=True),
    Column("executor", String(20), nullable=False),
    Column("gang", String(60), nullable=False),
    Column("rank", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("vcpu", Float(53), nullable=False),
    Column("memory_mb", BigInteger, nullable=False),
    Column("gpus", Float(53), nullable=False),
    Column("time_limit_s", Float(53)),
    Column("wants", JSON, nullable=False),
    Column("short", Boolean, nullable=False),
    # Whether it goes before what waits already, and whether it was asked to stop at its next checkpoint.
    Column("first", Boolean, nullable=False, server_default=false()),
    Column("give_way", Boolean, nullable=False, server_default=false()),
    Column("device", String(100)),
    Column("known", Boolean, nullable=False),
    Column("received", BigInteger, nullable=False),
    # Our time less the device's monotonic clock, when it first spoke of it: all entries are timed by this.
    Column("shift", Float(53)),
    Column("over", Boolean, nullable=False),
    Column("kill", Integer, nullable=False),
    Column("forgotten", Integer, nullable=False),
    Column("offered_at", Moment, nullable=False),
    Index(None, "executor", "device", "seq"),
    Index(None, "device"),
)

# What devices reported of the work above, in order of arrival; gone with the work.
work_reports = Table(
    "work_reports",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("executor", String(20), nullable=False),
    Column("key", String(60), nullable=False),
    Column("entries", Text, nullable=False),
    Column("gone", Text),
    Column("gone_end", String(20)),
    Index(None, "key"),
    Index(None, "executor", "seq"),
    sqlite_autoincrement=True,
)

# Workers that an engine (Ray, Slurm) was asked to start. `handle` is the engine's own name for it.
placements = Table(
    "placements",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("executor", String(20), nullable=False),
    Column("vcpu", Float(53), nullable=False),
    Column("memory_mb", BigInteger, nullable=False),
    Column("gpus", Float(53), nullable=False),
    Column("count", Integer, nullable=False),
    Column("time_s", Float(53)),
    Column("handle", String(100)),
    Column("made_at", Moment, nullable=False),
    Index(None, "executor"),
)

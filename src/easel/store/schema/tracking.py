"""What runs are ordered by and leave beside files: experiments, data sets that they read, models, the registry."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint

from easel.store.schema.lake import Name
from easel.store.schema.metadata import Moment, metadata

# Number 0 of every project is there without a row, until something about it is changed.
experiments = Table(
    "experiments",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Name, nullable=False),
    Column("artifact_location", Text),
    Column("tags", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    UniqueConstraint("project_id", "name"),
)

# What a run says that it read. `file_set` is the version in the lake that stands for it in the graph.
run_datasets = Table(
    "run_datasets",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("name", Name, primary_key=True),
    Column("digest", String(36), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("context", Text),
    Column("body", JSON, nullable=False),
    Column("file_set", BigInteger),
    Index(None, "project_id", "name"),
    Index(None, "project_id", "digest"),
)

logged_models = Table(
    "logged_models",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("experiment", Integer, nullable=False),
    Column("name", Name, nullable=False),
    Column("status", String(40), nullable=False),
    Column("status_message", Text),
    Column("model_type", Text),
    Column("run_id", String(40)),
    Column("params", JSON, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("metrics", JSON, nullable=False),
    Column("creator", String(40), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    Index(None, "project_id", "experiment", "created_at"),
    Index(None, "run_id"),
)

# Logged models that a run took (`input`) or made (`output`).
run_models = Table(
    "run_models",
    metadata,
    Column("job_id", String(40), primary_key=True),
    Column("model_id", String(40), primary_key=True),
    Column("role", String(8), primary_key=True),
    Column("step", BigInteger, nullable=False),
)

# A registered model is the file set `file_set`; `aliases` maps a name to a version.
registered_models = Table(
    "registered_models",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("name", Name, primary_key=True),
    Column("file_set", Name, nullable=False),
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("aliases", JSON, nullable=False),
    Column("latest", Integer, nullable=False),
    Column("creator", String(40), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("project_id", "file_set"),
)

# `set_version` is the version of the model's file set with its files; NULL where they lie outside of Easel.
model_versions = Table(
    "model_versions",
    metadata,
    Column("project_id", String(40), primary_key=True),
    Column("name", Name, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("set_version", Integer),
    Column("source", Text, nullable=False),
    Column("run_id", Text),
    Column("run_link", Text),
    Column("model_id", String(40)),
    Column("stage", String(20), nullable=False),
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("creator", String(40), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "project_id", "run_id"),
)

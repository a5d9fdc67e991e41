"""Studies, their points, and the samples of data that they were given."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, Integer, String, Table, Text, UniqueConstraint

from easel.store.schema.metadata import BigSerial, Moment, metadata

# `revision` grows with each change: whoever starts a point names the revision for which it was suggested.
studies = Table(
    "studies",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("name", String(64), nullable=False),
    Column("spec", JSON, nullable=False),
    # Observations of earlier studies, as they stood when this one was declared.
    Column("earlier", JSON, nullable=False),
    Column("state", String(10), nullable=False),
    Column("reason", Text),
    Column("revision", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    UniqueConstraint("project_id", "name"),
    Index("ix_studies_state", "state"),
)

# `told` is the order in which results came: strategies depend on it. `spent` and `best` are the budget used up and
# the recommendation once this point was told.
study_points = Table(
    "study_points",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("study_id", String(40), nullable=False),
    Column("number", Integer, nullable=False),
    Column("point", JSON, nullable=False),
    Column("state", String(10), nullable=False),
    Column("job_id", String(40), unique=True),
    Column("values", JSON, nullable=False),
    Column("why", JSON, nullable=False),
    Column("decision", JSON),
    Column("reason", Text),
    Column("told", Integer),
    Column("spent", Float(53)),
    Column("best", JSON),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    UniqueConstraint("study_id", "number"),
)

study_samples = Table(
    "study_samples",
    metadata,
    Column("study_id", String(40), primary_key=True),
    Column("fraction", Float(53), primary_key=True),
    Column("file_set", Text, nullable=False),
)

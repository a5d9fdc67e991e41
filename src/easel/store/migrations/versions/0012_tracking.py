"""Runs as MLflow's clients see them: experiments, models, a registry; the last and extreme values of every series."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ACTIVE = sa.text("state IN ('launching', 'downloading', 'running', 'uploading') AND kind <> 'free'")
_QUEUED = sa.text("state = 'queued' AND kind <> 'free'")

_FIRST_HALF = """
UPDATE job_series SET
  project_id = (SELECT j.project_id FROM jobs j WHERE j.id = job_series.job_id),
  last_step = (SELECT max(m.step) FROM job_metrics m WHERE m.job_id = job_series.job_id
               AND m.attempt = job_series.attempt AND m.name = job_series.name),
  low = (SELECT min(m.value) FROM job_metrics m WHERE m.job_id = job_series.job_id
         AND m.attempt = job_series.attempt AND m.name = job_series.name),
  high = (SELECT max(m.value) FROM job_metrics m WHERE m.job_id = job_series.job_id
          AND m.attempt = job_series.attempt AND m.name = job_series.name)
"""
_SECOND_HALF = """
UPDATE job_series SET
  last = (SELECT m.value FROM job_metrics m WHERE m.job_id = job_series.job_id AND m.attempt = job_series.attempt
          AND m.name = job_series.name AND m.step = job_series.last_step),
  last_text = (SELECT m.text FROM job_metrics m WHERE m.job_id = job_series.job_id
               AND m.attempt = job_series.attempt AND m.name = job_series.name AND m.step = job_series.last_step),
  last_at = (SELECT m.at FROM job_metrics m WHERE m.job_id = job_series.job_id
             AND m.attempt = job_series.attempt AND m.name = job_series.name AND m.step = job_series.last_step)
"""


def upgrade() -> None:
    _jobs()
    _series()
    op.add_column("tags", sa.Column("whole", sa.Text))
    _tables()


def _jobs() -> None:
    op.add_column("jobs", sa.Column("experiment", sa.Integer, nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("deleted_at", sa.BigInteger))
    op.create_index("ix_jobs_experiment", "jobs", ["project_id", "experiment", "submitted_at"])
    op.drop_index("ix_jobs_queue", "jobs")
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        ["project_id", "user_id", "blocked", "rank", "seq"],
        postgresql_where=_QUEUED,
        sqlite_where=_QUEUED,
    )
    op.drop_index("ix_jobs_active", "jobs")
    op.create_index(
        "ix_jobs_active", "jobs", ["project_id", "user_id"], postgresql_where=_ACTIVE, sqlite_where=_ACTIVE
    )


def _series() -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite takes names of any length
        for table in ("job_metrics", "job_series", "job_series_blocks"):
            op.alter_column(table, "name", type_=sa.String(250))
    op.create_table(
        "job_metric_repeats",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(250), primary_key=True),
        sa.Column("step", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("mark", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("value", sa.Float(53)),
        sa.Column("text", sa.String(4)),
    )
    for column in (
        sa.Column("project_id", sa.String(40)),
        sa.Column("last_step", sa.BigInteger),
        sa.Column("last_at", sa.BigInteger),
        sa.Column("last", sa.Float(53)),
        sa.Column("last_text", sa.String(4)),
        sa.Column("low", sa.Float(53)),
        sa.Column("high", sa.Float(53)),
    ):
        op.add_column("job_series", column)
    op.execute(_FIRST_HALF)
    op.execute(_SECOND_HALF)
    for which in ("last", "low", "high"):
        op.create_index(f"ix_job_series_{which}", "job_series", ["project_id", "name", which, "job_id"])


def _tables() -> None:
    op.create_table(
        "experiments",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("artifact_location", sa.Text),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
        sa.UniqueConstraint("project_id", "name", name="uq_experiments_project_id_name"),
    )
    op.create_table(
        "run_datasets",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("digest", sa.String(36), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("context", sa.Text),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("file_set", sa.BigInteger),
    )
    op.create_index("ix_run_datasets_project_id_name", "run_datasets", ["project_id", "name"])
    op.create_index("ix_run_datasets_project_id_digest", "run_datasets", ["project_id", "digest"])
    op.create_table(
        "logged_models",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("experiment", sa.Integer, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("status_message", sa.Text),
        sa.Column("model_type", sa.Text),
        sa.Column("run_id", sa.String(40)),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("creator", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
    )
    op.create_index(
        "ix_logged_models_project_id_experiment_created_at",
        "logged_models",
        ["project_id", "experiment", "created_at"],
    )
    op.create_index("ix_logged_models_run_id", "logged_models", ["run_id"])
    op.create_table(
        "run_models",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("model_id", sa.String(40), primary_key=True),
        sa.Column("role", sa.String(8), primary_key=True),
        sa.Column("step", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "registered_models",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("file_set", NAME, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("aliases", sa.JSON, nullable=False),
        sa.Column("latest", sa.Integer, nullable=False),
        sa.Column("creator", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("project_id", "file_set", name="uq_registered_models_project_id_file_set"),
    )
    op.create_table(
        "model_versions",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("set_version", sa.Integer),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("run_link", sa.Text),
        sa.Column("model_id", sa.String(40)),
        sa.Column("stage", sa.String(20), nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("creator", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_model_versions_project_id_run_id", "model_versions", ["project_id", "run_id"])

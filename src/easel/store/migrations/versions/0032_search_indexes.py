"""Indexes that answer searches over runs without reading the runs."""

from alembic import op

revision = "0032"
down_revision = "0031"
oldest_supported = "0024"  # indexes of the same names and columns: older releases search as before


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":  # SQLite has no included columns
        return
    op.drop_index("ix_jobs_experiment", "jobs")
    op.create_index(
        "ix_jobs_experiment",
        "jobs",
        ["project_id", "experiment", "submitted_at"],
        postgresql_include=["id", "artifact_id", "attempt", "deleted_at"],
    )
    op.drop_index("ix_job_series_last", "job_series")
    op.create_index(
        "ix_job_series_last",
        "job_series",
        ["project_id", "name", "last", "job_id"],
        postgresql_include=["attempt"],
    )

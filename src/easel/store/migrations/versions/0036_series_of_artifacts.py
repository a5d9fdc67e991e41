"""Join series of metrics and tags by the number of their job's artifact, in indexes alone."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
oldest_supported = "0036"  # series that older releases log have no number, and searches would not find them


def upgrade() -> None:
    op.add_column("job_series", sa.Column("artifact_id", sa.BigInteger()))
    op.drop_index("ix_job_series_last", "job_series")  # before the update, which would write it row by row
    op.execute(
        "UPDATE job_series SET artifact_id = jobs.artifact_id FROM jobs WHERE jobs.id = job_series.job_id"
    )
    op.create_index(
        "ix_job_series_last",
        "job_series",
        ["project_id", "name", "last", "artifact_id"],
        postgresql_include=["attempt"],
    )
    op.create_index(
        "ix_job_series_artifact",
        "job_series",
        ["artifact_id", "name"],
        postgresql_include=["attempt", "last", "project_id"],
    )
    op.create_index("ix_jobs_artifact", "jobs", ["artifact_id"])

"""Blocks of long series, and indexes for what a long list of jobs is sorted and filtered by."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "job_series",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("closed_to", sa.BigInteger),
        sa.Column("closed", sa.BigInteger, nullable=False),
        sa.Column("open", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "job_series_blocks",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("points", sa.Integer, nullable=False),
        sa.Column("low_step", sa.BigInteger),
        sa.Column("low", sa.Float(53)),
        sa.Column("high_step", sa.BigInteger),
        sa.Column("high", sa.Float(53)),
        sa.Column("odd_step", sa.BigInteger),
    )
    # Series that are there have no blocks yet: the next point that is added makes them.
    op.execute(
        "INSERT INTO job_series (job_id, attempt, name, closed, open) "
        "SELECT job_id, attempt, name, 0, count(*) FROM job_metrics GROUP BY job_id, attempt, name"
    )
    op.create_index("ix_jobs_project_state", "jobs", ["project_id", "state", "seq"])
    op.create_index("ix_jobs_project_name", "jobs", ["project_id", "name", "seq"])
    op.create_index("ix_jobs_project_submitted", "jobs", ["project_id", "submitted_at", "seq"])
    op.create_index("ix_jobs_project_user", "jobs", ["project_id", "user_id", "seq"])

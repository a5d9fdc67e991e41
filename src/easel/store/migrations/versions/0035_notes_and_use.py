"""Notes on jobs, models and files; ends of attempts by time, for the pool's use over time."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("artifact_id", sa.BigInteger, nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("written_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
    )
    op.create_index("ix_notes_artifact", "notes", ["artifact_id", "written_at"])
    op.create_index("ix_job_attempts_ended", "job_attempts", ["ended_at"])

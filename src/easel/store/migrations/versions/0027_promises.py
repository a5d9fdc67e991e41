"""What jobs that wait are told: when they start and by when they end."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "promises",
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("start_at", sa.BigInteger),
        sa.Column("end_80", sa.BigInteger),
        sa.Column("end_90", sa.BigInteger),
        sa.Column("end_95", sa.BigInteger),
        sa.Column("forecast", sa.JSON),
        sa.PrimaryKeyConstraint("job_id", name="pk_promises"),
    )
    op.create_index("ix_promises_project_id_made_at", "promises", ["project_id", "made_at"])

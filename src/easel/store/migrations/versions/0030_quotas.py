"""Quotas of projects and users."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("gpu_hours", sa.Float(53)),
        sa.Column("jobs", sa.Integer),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_quotas"),
    )

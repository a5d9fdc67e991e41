"""Devices that are kept for one project for a while."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("device", sa.String(100), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("start_at", sa.BigInteger, nullable=False),
        sa.Column("end_at", sa.BigInteger, nullable=False),
        sa.Column("made_by", sa.String(40), nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_end_at", "reservations", ["end_at"])

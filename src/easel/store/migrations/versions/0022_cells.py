"""Cells of notebooks that ran as jobs."""

import sqlalchemy as sa
from alembic import op

from easel.store.schema.metadata import Moment

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "job_cells",
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("cell", sa.Integer, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "attempt", "cell", name="pk_job_cells"),
    )

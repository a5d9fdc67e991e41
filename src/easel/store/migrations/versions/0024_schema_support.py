"""The oldest schema whose release still works with this one."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
oldest_supported = "0024"
"""Releases before did not look."""


def upgrade() -> None:
    op.create_table(
        "schema_support",
        sa.Column("oldest", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("oldest", name="pk_schema_support"),
    )

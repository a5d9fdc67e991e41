"""A least share of the pool for apps; work that goes first, and work that is asked to stop at a checkpoint."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
oldest_supported = "0024"  # older releases do not read the table, and leave the columns at their defaults


def upgrade() -> None:
    op.create_table(
        "pool_shares",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("least", sa.Float(53), nullable=False),
        sa.Column("set_by", sa.String(40), nullable=False),
        sa.Column("set_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("kind", name="pk_pool_shares"),
    )
    for name in ("first", "give_way"):
        op.add_column("work", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))

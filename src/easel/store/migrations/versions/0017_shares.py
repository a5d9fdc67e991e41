"""What projects and users have used of the pool, and their weights."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "shares",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("usage", sa.Float(53), nullable=False),
        sa.Column("used_at", sa.BigInteger, nullable=False),
        sa.Column("weight", sa.Float(53), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_shares"),
    )

"""Word vectors that an app was given, and whether its learning rates are tried inside a trial."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("apps", sa.Column("rates_inside", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("apps", sa.Column("vectors", sa.Text))
    op.add_column("apps", sa.Column("vector_size", sa.Integer, nullable=False, server_default="0"))

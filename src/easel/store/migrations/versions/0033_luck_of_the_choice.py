"""The luck in an app's best score, being chosen by the same examples; metrics of any length (costs of mistakes)."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
oldest_supported = "0024"  # a column that older releases neither read nor write


def upgrade() -> None:
    op.add_column("app_trials", sa.Column("luck", sa.Float(53)))
    if op.get_bind().dialect.name == "postgresql":  # SQLite keeps texts of any length
        op.alter_column("apps", "metric", type_=sa.Text())

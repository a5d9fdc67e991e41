"""Trials in slices: how far each came, and whether one was asked to give way."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("give_way", sa.Boolean(), nullable=False, server_default=sa.false()))
    for column in ("share", "scale"):
        op.add_column("app_trials", sa.Column(column, sa.Float(53), nullable=False, server_default="1"))
    op.add_column("trial_history", sa.Column("share", sa.Float(53), nullable=False, server_default="1"))

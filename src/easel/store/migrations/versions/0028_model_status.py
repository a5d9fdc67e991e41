"""Room for the longest status of a logged model, LOGGED_MODEL_UPLOAD_FAILED."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
oldest_supported = "0024"
"""Older releases write shorter texts, which fit."""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite heeds no lengths
        op.alter_column("logged_models", "status", type_=sa.String(40))

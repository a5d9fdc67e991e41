"""Sessions remember how the provider calls them, so that it can end them."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
oldest_supported = "0024"  # one more column that may be empty: older releases open sessions as before


def upgrade() -> None:
    op.add_column("sessions", sa.Column("sid", sa.String(255)))

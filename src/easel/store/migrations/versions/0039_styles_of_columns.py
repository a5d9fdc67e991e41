"""Apps remember how their columns write numbers and dates."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
oldest_supported = "0024"  # one more column that may be empty: older releases feed apps as before


def upgrade() -> None:
    op.add_column("apps", sa.Column("styles", sa.JSON()))

"""A command line's log-in remembers the token of the person who allowed it, so that it ends with that."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
oldest_supported = (
    "0024"  # one more column that may be empty: what an older release allowed is asked for again
)


def upgrade() -> None:
    op.add_column("device_logins", sa.Column("token_id", sa.String(40)))

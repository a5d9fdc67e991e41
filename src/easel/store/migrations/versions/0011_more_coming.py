"""Until when an app waits for the rest of a feed before it learns."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("apps", sa.Column("more_until", sa.BigInteger))

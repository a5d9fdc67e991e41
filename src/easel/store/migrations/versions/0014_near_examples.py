"""What tells nearly equal examples, which share a fold."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("app_examples", sa.Column("near", sa.String(32)))
    op.create_index("app_examples_near", "app_examples", ["app_id", "near"])

"""Projects remember what their requirements were locked to."""

import sqlalchemy as sa
from alembic import op

from easel.store.schema.metadata import Moment

revision = "0041"
down_revision = "0040"
oldest_supported = "0024"  # one more table: older releases lock on each machine, as before


def upgrade() -> None:
    op.create_table(
        "environments",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("asked", sa.String(64), primary_key=True),
        sa.Column("lock", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("python", sa.String(40), nullable=False),
        sa.Column("packages", sa.JSON(), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("made_at", Moment, nullable=False),
    )
    op.create_index("ix_environments_project_id_name", "environments", ["project_id", "name"])

"""Jobs that look into an app: its model, its examples."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.create_table(
        "app_reports",
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(400), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("app_id", "kind", "subject", name="pk_app_reports"),
    )

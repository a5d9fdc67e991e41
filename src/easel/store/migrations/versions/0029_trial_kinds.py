"""On which kind of GPU past trials ran, how long they took there, how often memory was short."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("trial_history", sa.Column("kind", sa.String(80), nullable=False, server_default=""))
    op.add_column("trial_history", sa.Column("kind_s", sa.Float(53)))
    op.add_column("trial_history", sa.Column("halved", sa.Integer, nullable=False, server_default="0"))

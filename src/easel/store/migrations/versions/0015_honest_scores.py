"""The sampling error of a trial's score, and the score of always giving the same answer."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("app_trials", sa.Column("error", sa.Float(53)))
    op.add_column("app_trials", sa.Column("baseline", sa.Float(53)))

"""Where an example's bytes are and what it looks like; a pinned model; the job that looks for wrong labels."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for column in (
        sa.Column("preview", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("shard", sa.Text),
        sa.Column("start", sa.BigInteger),
        sa.Column("length", sa.BigInteger),
    ):
        op.add_column("app_examples", column)
    op.add_column("apps", sa.Column("pinned", sa.Text))
    op.add_column("apps", sa.Column("suspects_job", sa.String(40)))
    op.add_column("app_trials", sa.Column("ended_at", sa.BigInteger))

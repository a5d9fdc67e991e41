"""Ways to reach people, and the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "message_channels",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("way", sa.String(8), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("topics", sa.JSON, nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("quiet_start", sa.Integer),
        sa.Column("quiet_end", sa.Integer),
        sa.Column("digest_at", sa.Integer),
        sa.Column("stopped", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_message_channels"),
    )
    op.create_index("ix_message_channels_user_id", "message_channels", ["user_id"])
    op.create_table(
        "outbox",
        sa.Column("seq", big, nullable=False, autoincrement=True),
        sa.Column("channel_id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("project", sa.String(64)),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_channel_id_seq", "outbox", ["channel_id", "seq"])
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_outbox_due", "outbox", ["due_at"], postgresql_where=waiting, sqlite_where=waiting)

"""Work that is pulled: tokens of workers, the workers, what waits for them, what they reported."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "worker_tokens",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.UniqueConstraint("secret_hash", name="uq_worker_tokens_secret_hash"),
        sa.Column("made_by", sa.String(40)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("executor", sa.String(20), nullable=False),
        sa.Column("token_id", sa.String(40), nullable=False),
        sa.Column("session", sa.BigInteger, nullable=False),
        sa.Column("beats", sa.BigInteger, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("left", sa.Boolean, nullable=False),
    )
    op.create_table(
        "pools",
        sa.Column("executor", sa.String(20), primary_key=True),
        sa.Column("fence", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "work",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String(60), nullable=False),
        sa.UniqueConstraint("key", name="uq_work_key"),
        sa.Column("executor", sa.String(20), nullable=False),
        sa.Column("gang", sa.String(60), nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("vcpu", sa.Float(53), nullable=False),
        sa.Column("memory_mb", sa.BigInteger, nullable=False),
        sa.Column("gpus", sa.Float(53), nullable=False),
        sa.Column("time_limit_s", sa.Float(53)),
        sa.Column("wants", sa.JSON, nullable=False),
        sa.Column("short", sa.Boolean, nullable=False),
        sa.Column("device", sa.String(100)),
        sa.Column("known", sa.Boolean, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("kill", sa.Integer, nullable=False),
        sa.Column("forgotten", sa.Integer, nullable=False),
        sa.Column("offered_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_work_device", "work", ["device"])
    op.create_index("ix_work_executor_device_seq", "work", ["executor", "device", "seq"])
    op.create_table(
        "work_reports",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("executor", sa.String(20), nullable=False),
        sa.Column("key", sa.String(60), nullable=False),
        sa.Column("entries", sa.Text, nullable=False),
        sa.Column("gone", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_work_reports_executor_seq", "work_reports", ["executor", "seq"])
    op.create_index("ix_work_reports_key", "work_reports", ["key"])
    op.create_table(
        "placements",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("executor", sa.String(20), nullable=False),
        sa.Column("vcpu", sa.Float(53), nullable=False),
        sa.Column("memory_mb", sa.BigInteger, nullable=False),
        sa.Column("gpus", sa.Float(53), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("time_s", sa.Float(53)),
        sa.Column("handle", sa.String(100)),
        sa.Column("made_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_placements_executor", "placements", ["executor"])

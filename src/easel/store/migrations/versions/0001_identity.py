"""Projects, users, tokens, sessions, idempotency keys, events, leases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("archived_at", sa.BigInteger),
        sa.UniqueConstraint("name", name="uq_projects_name"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("home", sa.String(40), nullable=False),
        sa.Column("platform_admin", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("disabled_at", sa.BigInteger),
        sa.UniqueConstraint("home", "name", name="uq_users_home_name"),
    )
    op.create_table(
        "memberships",
        sa.Column("project_id", sa.String(40), sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("user_id", sa.String(40), sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.CheckConstraint("role IN ('member', 'admin')", name="ck_memberships_role"),
    )
    op.create_index("ix_memberships_user_id", "memberships", ["user_id"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("user_id", sa.String(40), sa.ForeignKey("users.id"), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.UniqueConstraint("secret_hash", name="uq_tokens_secret_hash"),
    )
    op.create_index("ix_tokens_user_id", "tokens", ["user_id"])
    op.create_table(
        "sessions",
        sa.Column("secret_hash", sa.String(64), primary_key=True),
        sa.Column("token_id", sa.String(40), sa.ForeignKey("tokens.id"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "idempotency",
        sa.Column("user_id", sa.String(40), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("answer", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])
    op.create_table(
        "events",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("project_id", sa.String(40)),
        sa.Column("actor", sa.String(40)),
        sa.Column("body", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_project_id_seq", "events", ["project_id", "seq"])
    op.create_index("ix_events_subject_seq", "events", ["subject", "seq"])
    op.create_table(
        "leases",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("holder", sa.String(100), nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )

"""Owners of projects, service accounts, scopes of tokens, invitations, sign-on elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("projects", sa.Column("owner_id", sa.String(40)))
    op.add_column("projects", sa.Column("exported_at", sa.BigInteger))
    op.add_column("users", sa.Column("service", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("memberships", sa.Column("source", sa.String(64)))
    op.add_column("tokens", sa.Column("scope", sa.JSON))
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("note", sa.String(200), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("user_id", sa.String(40)),
        sa.UniqueConstraint("secret_hash", name="uq_invitations_secret_hash"),
    )
    op.create_index("ix_invitations_project_id_created_at", "invitations", ["project_id", "created_at"])
    op.create_table(
        "identities",
        sa.Column("provider", sa.String(64), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("user_id", sa.String(40), sa.ForeignKey("users.id"), nullable=False),
        sa.Column("groups", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_identities_user_id", "identities", ["user_id"])
    op.create_table(
        "sign_ons",
        sa.Column("state_hash", sa.String(64), primary_key=True),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("nonce", sa.String(100), nullable=False),
        sa.Column("verifier", sa.String(100), nullable=False),
        sa.Column("next", sa.String(2000), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_sign_ons_expires_at", "sign_ons", ["expires_at"])
    op.create_table(
        "device_logins",
        sa.Column("device_hash", sa.String(64), primary_key=True),
        sa.Column("user_code", sa.String(16), nullable=False),
        sa.Column("client", sa.String(200), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("asked_at", sa.BigInteger),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("user_id", sa.String(40)),
        sa.UniqueConstraint("user_code", name="uq_device_logins_user_code"),
    )
    op.create_index("ix_device_logins_expires_at", "device_logins", ["expires_at"])

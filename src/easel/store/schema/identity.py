"""Projects, users, memberships, tokens, browser sessions and idempotency keys."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
)

from easel.store.schema.metadata import Moment, metadata

projects = Table(
    "projects",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("description", String(2000), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("archived_at", Moment),
)

# A user has a home project, so that a name is unique there and says nothing about other projects.
# Platform admins have none.
users = Table(
    "users",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("home", String(40), nullable=False),
    Column("platform_admin", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("disabled_at", Moment),
    UniqueConstraint("home", "name"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("since", Moment, nullable=False),
    CheckConstraint("role IN ('member', 'admin')", name="role"),
    Index(None, "user_id"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("name", String(100), nullable=False),
    Column("secret_hash", String(64), nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("last_used_at", Moment),
    Index(None, "user_id"),
)

# A browser's log-in. It ends with its token: the foreign key lets one query check both.
sessions = Table(
    "sessions",
    metadata,
    Column("secret_hash", String(64), primary_key=True),
    Column("token_id", ForeignKey("tokens.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Index(None, "expires_at"),
)

# The answer to a create, kept in the transaction that created, so that a retry gets the same answer.
idempotency = Table(
    "idempotency",
    metadata,
    Column("user_id", String(40), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "created_at"),
)

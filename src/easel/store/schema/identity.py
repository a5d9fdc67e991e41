"""Projects, users, memberships, tokens, sessions, invitations, sign-on elsewhere, idempotency keys."""

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
    false,
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
    # Who answers for it; without one any of its admins does.
    Column("owner_id", String(40)),
    # When all of it was last handed out as an export.
    Column("exported_at", Moment),
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
    # No person: a program with tokens of its own.
    Column("service", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("home", "name"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("since", Moment, nullable=False),
    # The provider whose groups say so: what it gave, it takes. None: a person here said so.
    Column("source", String(64)),
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
    # What it may do, and where: {"projects": [id …] or null, "verbs": […]}. NULL: all that its user may.
    Column("scope", JSON(none_as_null=True)),
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
    # How the provider that somebody signed on with calls this session, so that it can end it.
    Column("sid", String(255)),
    Index(None, "expires_at"),
)

# `ended_at` with a `user_id` says that somebody joined with it, without one that it was withdrawn.
invitations = Table(
    "invitations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("role", String(16), nullable=False),
    Column("note", String(200), nullable=False),
    Column("secret_hash", String(64), nullable=False, unique=True),
    Column("created_by", String(40), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("user_id", String(40)),
    Index(None, "project_id", "created_at"),
)

# Whom a provider of identities knows by which subject, with the groups of the last log-in.
identities = Table(
    "identities",
    metadata,
    Column("provider", String(64), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("groups", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_at", Moment, nullable=False),
    Index(None, "user_id"),
)

# A browser that was sent to a provider. The row is gone when it comes back: no answer counts twice.
sign_ons = Table(
    "sign_ons",
    metadata,
    Column("state_hash", String(64), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("nonce", String(100), nullable=False),
    Column("verifier", String(100), nullable=False),
    Column("next", String(2000), nullable=False),
    Column("expires_at", Moment, nullable=False),
    Index(None, "expires_at"),
)

# A command line that waits until somebody types its code into a browser (RFC 8628).
device_logins = Table(
    "device_logins",
    metadata,
    Column("device_hash", String(64), primary_key=True),
    Column("user_code", String(16), nullable=False, unique=True),
    Column("client", String(200), nullable=False),
    Column("address", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("asked_at", Moment),
    Column("state", String(10), nullable=False),
    Column("user_id", String(40)),
    # What the person showed who answered: the token that comes of it ends with it.
    Column("token_id", String(40)),
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

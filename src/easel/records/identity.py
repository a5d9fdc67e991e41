"""Who there is: projects, users, their roles and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.ids import ProjectId, TokenId, UserId


@dataclass(frozen=True, slots=True)
class Project:
    id: ProjectId
    name: str
    description: str
    created_at: datetime
    archived_at: datetime | None
    owner_id: UserId | None = None
    exported_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class User:
    id: UserId
    name: str
    platform_admin: bool
    created_at: datetime
    disabled_at: datetime | None
    service: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    user: User
    role: Role
    since: datetime
    source: str | None = None


@dataclass(frozen=True, slots=True)
class TokenScope:
    """What a token may do, and in which projects (None: in all of its user's)."""

    verbs: frozenset[Verb]
    projects: tuple[ProjectId, ...] | None = None

    def within(self, other: TokenScope) -> bool:
        """Whether this allows nothing that the other does not."""
        if not self.verbs <= other.verbs:
            return False
        return other.projects is None or (
            self.projects is not None and set(self.projects) <= set(other.projects)
        )


@dataclass(frozen=True, slots=True)
class Token:
    """A credential without its secret, which is shown once and never stored."""

    id: TokenId
    user_id: UserId
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    scope: TokenScope | None = None

    def works(self, now: datetime) -> bool:
        """Whether it was neither revoked nor has ended."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True)
class Invitation:
    """`ended_at` with a `user_id`: that user joined with it; without: it was withdrawn."""

    id: str
    project_id: ProjectId
    role: Role
    note: str
    created_by: UserId
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    user_id: UserId | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes this request, and, on a project's routes, in which project and role.

    A platform admin acts in every project as its admin. `until` is when the token ends that they showed (None: never).
    """

    user: User
    token_id: TokenId
    project: Project | None = None
    role: Role | None = None
    scope: TokenScope | None = None
    until: datetime | None = None

    @property
    def project_id(self) -> ProjectId:
        assert self.project is not None, "this route is not under a project"
        return self.project.id

"""Projects, users, tokens, sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from easel.declare.roles import Role
from easel.wire.model import Answer, Moment, Request

Slug = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?$",
        description="Letters, digits, '.', '_' and '-'",
        examples=["astro"],
    ),
]
Label = Annotated[str, Field(min_length=1, max_length=100, examples=["laptop"])]


class CreateProject(Request):
    name: Slug
    description: Annotated[str, Field(max_length=2000)] = ""


class Project(Answer):
    id: str
    name: str
    description: str
    created_at: Moment


class CreateUser(Request):
    name: Slug
    role: Role = Role.MEMBER
    token_expires_at: Moment | None = None


class AdmitUser(Request):
    user_id: Annotated[str, Field(max_length=40)]
    role: Role = Role.MEMBER


class ChangeRole(Request):
    role: Role


class User(Answer):
    id: str
    name: str
    platform_admin: bool
    created_at: Moment


class Member(Answer):
    id: str
    name: str
    role: Role
    since: Moment


class CreateToken(Request):
    name: Label
    expires_at: Moment | None = None


class Token(Answer):
    id: str
    name: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


class IssuedToken(Token):
    secret: Annotated[
        str | None,
        Field(description="Shown once. Null when a retried request finds that it was shown already"),
    ]


class CreatedUser(Member):
    token: IssuedToken


class Me(Answer):
    user: User
    token_id: str
    csrf_token: Annotated[
        str | None, Field(description="For a browser session: send it as X-CSRF-Token with every change")
    ] = None


class LogIn(Request):
    token: Annotated[str, Field(min_length=1, max_length=200)]

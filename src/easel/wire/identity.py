"""Projects, users, tokens, sessions."""

from __future__ import annotations

from typing import Annotated

from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.wire.fields import Label, Slug
from easel.wire.model import Answer, Field, Moment, Request


class CreateProject(Request):
    name: Slug
    description: Annotated[str, Field(max_length=2000)] = ""


class Project(Answer):
    id: str
    name: str
    description: str
    created_at: Moment
    archived_at: Annotated[Moment | None, Field(description="Since when it can only be read")] = None
    owner_id: Annotated[str | None, Field(description="Who answers for it; null: any of its admins")] = None
    exported_at: Annotated[Moment | None, Field(description="When all of it was last handed out")] = None


class ChangeProject(Request):
    """What is null stays as it is."""

    description: Annotated[str | None, Field(max_length=2000)] = None
    archived: Annotated[bool | None, Field(description="True: from now on it can only be read")] = None
    owner: Annotated[str | None, Field(max_length=64, description="Name or id of the new owner")] = None


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
    disabled_at: Moment | None = None
    service: Annotated[bool, Field(description="A program, not a person")] = False


class Person(User):
    """Somebody on this installation, as its admins see them."""

    projects: list[str]
    provider: Annotated[str | None, Field(description="Where they sign on; null: with tokens only")] = None
    groups: Annotated[list[str], Field(description="Their groups there, at the last log-in")] = Field(
        default_factory=list
    )
    signed_on_at: Moment | None = None


class DisableUser(Request):
    hand_over_to: Annotated[
        str | None,
        Field(max_length=64, description="Name or id of the member who takes over apps and studies"),
    ] = None
    kill_running: Annotated[bool, Field(description="Also end jobs that run already")] = False


class Departure(Answer):
    user: User
    tokens: Annotated[int, Field(description="Tokens that stopped working")]
    jobs: Annotated[int, Field(description="Jobs that were ended")]
    handed_over: Annotated[int, Field(description="Things that somebody else owns now")]


class HandOver(Request):
    to: Annotated[str, Field(max_length=64, description="Name or id of a member")]


class HandedOver(Answer):
    things: int


class CreateInvitation(Request):
    role: Role = Role.MEMBER
    note: Annotated[str, Field(max_length=200, description="For whom, or why; only admins see it")] = ""
    days: Annotated[float, Field(gt=0, le=90, description="It ends after so many days")] = 7


class Invitation(Answer):
    id: str
    role: Role
    note: str
    created_at: Moment
    expires_at: Moment
    ended_at: Annotated[Moment | None, Field(description="When it was accepted or withdrawn")]
    user_id: Annotated[str | None, Field(description="Who accepted it")]


class IssuedInvitation(Invitation):
    code: Annotated[
        str | None, Field(description="Shown once. Null when a retried request finds it was shown")
    ]


class AcceptInvitation(Request):
    code: Annotated[str, Field(min_length=1, max_length=200)]
    name: Slug


class JoinProject(Request):
    code: Annotated[str, Field(min_length=1, max_length=200)]


class TokenScope(Answer):
    """What a token may do; `projects` null: wherever its user may."""

    verbs: list[Verb]
    projects: list[str] | None


class Member(Answer):
    id: str
    name: str
    role: Role
    since: Moment
    disabled_at: Moment | None = None
    service: bool = False
    source: Annotated[str | None, Field(description="The provider whose groups made them a member")] = None


class CreateToken(Request):
    name: Label
    expires_at: Moment | None = None
    verbs: Annotated[
        tuple[Verb, ...], Field(max_length=4, description="All that it may do; empty: everything")
    ] = ()
    projects: Annotated[
        tuple[Slug, ...], Field(max_length=100, description="Where it works; empty: wherever you may")
    ] = ()


class Token(Answer):
    id: str
    name: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None
    scope: Annotated[TokenScope | None, Field(description="Null: all that its user may")] = None


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
    currency: Annotated[str, Field(description="Of every amount on this server", examples=["EUR"])] = "USD"
    csrf_token: Annotated[
        str | None, Field(description="For a browser session: send it as X-CSRF-Token with every change")
    ] = None


class LogIn(Request):
    token: Annotated[str, Field(min_length=1, max_length=200)]


class CreateServiceAccount(Request):
    name: Slug
    role: Role = Role.MEMBER


class CreateServiceToken(Request):
    name: Label
    verbs: Annotated[tuple[Verb, ...], Field(min_length=1, max_length=4, description="What it may do")] = (
        Verb.READ,
    )
    projects: Annotated[tuple[Slug, ...], Field(max_length=100, description="Empty: this project only")] = ()
    days: Annotated[float, Field(gt=0, le=366, description="It stops working after so many days")] = 90


class RotateToken(Request):
    overlap_hours: Annotated[float, Field(ge=0, le=720, description="How long the old one still works")] = 24


class ServiceAccount(Member):
    tokens: tuple[Token, ...] = ()


class Joined(Answer):
    """Whoever accepted an invitation: in which project, as what."""

    project: str
    member: Member


class Accepted(Joined):
    token: IssuedToken

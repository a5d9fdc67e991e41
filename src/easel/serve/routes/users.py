"""The people of a project."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response

from easel.declare.verbs import Verb
from easel.flow import members
from easel.flow.issue_token import issue_for_member
from easel.flow.people.disable import Departure, disable, enable, hand_over
from easel.ids import UserId
from easel.records.identity import Membership
from easel.serve.access import Member, PlatformAdmin, ProjectAdmin, State, acts
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.tokens import issued, without_secret
from easel.serve.state import Tx
from easel.wire import identity as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/users", tags=["users"])

User = Annotated[str, Path(description="A user's name or id", max_length=64)]


@router.get("", response_model=Page[wire.Member])
def users(state: State, caller: Member, page: Paging) -> Page[wire.Member]:
    """Who works in this project."""
    with state.store.read() as tx:
        found = members.list_members(tx, caller, page)
    return Page(items=[shown(m) for m in found.items], next_cursor=found.next_cursor)


@router.post("", response_model=wire.CreatedUser, status_code=201)
def add_user(caller: ProjectAdmin, create: Create, body: wire.CreateUser) -> Response:
    """A new person, with a first token to hand over."""

    def make(tx: Tx) -> wire.CreatedUser:
        made, token = members.create_user(tx, caller, body.name, body.role, body.token_expires_at)
        return wire.CreatedUser(**shown(made).model_dump(), token=issued(token))

    def once(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "token": without_secret(answer["token"])}

    return create(caller, body, make, once=once)


@router.post("/admit", response_model=wire.Member, status_code=201)
def admit_user(caller: PlatformAdmin, create: Create, body: wire.AdmitUser) -> Response:
    """Let somebody from another project in."""

    def make(tx: Tx) -> wire.Member:
        return shown(members.admit(tx, caller, UserId(body.user_id), body.role))

    return create(caller, body, make)


@router.get("/{user}", response_model=wire.Member)
def user(state: State, caller: Member, user: User) -> wire.Member:
    """One person of this project."""
    with state.store.read() as tx:
        return shown(members.get_member(tx, caller, user))


@router.patch("/{user}", response_model=wire.Member)
def change_user(state: State, caller: ProjectAdmin, user: User, body: wire.ChangeRole) -> wire.Member:
    """Make somebody admin or member."""
    with state.store.write() as tx:
        return shown(members.change_role(tx, caller, user, body.role))


@router.delete("/{user}", status_code=204)
@acts(Verb.MANAGE, even_archived=True)
def remove_user(state: State, caller: ProjectAdmin, user: User) -> None:
    """Let somebody go from this project; what they made stays."""
    with state.store.write() as tx:
        members.remove(tx, caller, user)


@router.post("/{user}/disable", response_model=wire.Departure)
@acts(Verb.MANAGE, even_archived=True)
def disable_user(state: State, caller: ProjectAdmin, user: User, body: wire.DisableUser) -> wire.Departure:
    """End somebody's sessions, tokens and waiting jobs at once; their work is kept and may be handed over."""
    with state.store.write() as tx:
        return departed(disable(tx, caller, user, **body.model_dump()))


@router.post("/{user}/enable", response_model=wire.User)
@acts(Verb.MANAGE, even_archived=True)
def enable_user(state: State, caller: ProjectAdmin, user: User) -> wire.User:
    """Let somebody in again, with new tokens."""
    with state.store.write() as tx:
        return wire.User.model_validate(enable(tx, caller, user))


@router.post("/{user}/hand-over", response_model=wire.HandedOver)
def hand_over_work(state: State, caller: ProjectAdmin, user: User, body: wire.HandOver) -> wire.HandedOver:
    """Make another member the owner of somebody's apps, studies, profiles and rights on files."""
    with state.store.write() as tx:
        who = members.get_member(tx, caller, user).user
        return wire.HandedOver(things=hand_over(tx, caller, who, body.to, caller.project_id))


@router.post("/{user}/tokens", response_model=wire.IssuedToken, status_code=201)
def add_user_token(caller: ProjectAdmin, create: Create, user: User, body: wire.CreateToken) -> Response:
    """A further token for somebody of this project."""

    def make(tx: Tx) -> wire.IssuedToken:
        return issued(issue_for_member(tx, caller, user, body.name, body.expires_at))

    return create(caller, body, make, once=without_secret)


def departed(made: Departure) -> wire.Departure:
    user = wire.User.model_validate(made.user)
    return wire.Departure(user=user, tokens=made.tokens, jobs=made.jobs, handed_over=made.handed_over)


def shown(found: Membership) -> wire.Member:
    return wire.Member(
        id=found.user.id,
        name=found.user.name,
        role=found.role,
        since=found.since,
        disabled_at=found.user.disabled_at,
        service=found.user.service,
        source=found.source,
    )

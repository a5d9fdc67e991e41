"""Everybody on this installation, for those who run it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from easel.flow.people.directory import Directory, list_users
from easel.flow.people.disable import disable, enable
from easel.records.identity import User
from easel.serve.access import PlatformAdmin, State
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.users import departed
from easel.wire import identity as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/users", tags=["users"])
UserId = Annotated[str, Path(description="A user's id", max_length=64)]


@router.get("", response_model=Page[wire.Person])
def everybody(state: State, caller: PlatformAdmin, page: Paging) -> Page[wire.Person]:
    """List everybody on this installation, with the projects each is in."""
    with state.store.read() as tx:
        found = list_users(tx, page)
    return Page(items=[_person(found, user) for user in found.page.items], next_cursor=found.page.next_cursor)


def _person(found: Directory, user: User) -> wire.Person:
    known = found.identities.get(user.id)
    return wire.Person(
        **wire.User.model_validate(user).model_dump(),
        projects=found.projects[user.id],
        provider=known.provider if known else None,
        groups=list(known.groups) if known else [],
        signed_on_at=known.last_at if known else None,
    )


@router.post("/{user}/disable", response_model=wire.Departure)
def disable_anybody(
    state: State, caller: PlatformAdmin, user: UserId, body: wire.DisableUser
) -> wire.Departure:
    """End somebody's sessions, tokens and waiting jobs at once, in all projects."""
    with state.store.write() as tx:
        return departed(disable(tx, caller, user, **body.model_dump()))


@router.post("/{user}/enable", response_model=wire.User)
def enable_anybody(state: State, caller: PlatformAdmin, user: UserId) -> wire.User:
    """Let somebody in again, with new tokens."""
    with state.store.write() as tx:
        return wire.User.model_validate(enable(tx, caller, user))

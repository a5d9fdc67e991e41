"""Invitations into a project."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request, Response

from easel.errors import Unauthenticated
from easel.flow.people import invitations
from easel.flow.people.invitations import list_invitations
from easel.serve.access import ProjectAdmin, SignedIn, State, address_of, anyone
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.tokens import issued
from easel.serve.routes.users import shown
from easel.serve.state import Tx
from easel.wire import identity as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1", tags=["invitations"])
_IN_PROJECT = "/projects/{project}/invitations"


@router.get(_IN_PROJECT, response_model=Page[wire.Invitation])
def list_all(state: State, caller: ProjectAdmin, page: Paging) -> Page[wire.Invitation]:
    """The project's invitations, newest first, without their codes."""
    with state.store.read() as tx:
        found = list_invitations(tx, caller, page)
    items = [wire.Invitation.model_validate(each) for each in found.items]
    return Page(items=items, next_cursor=found.next_cursor)


@router.post(_IN_PROJECT, response_model=wire.IssuedInvitation, status_code=201)
def invite(caller: ProjectAdmin, create: Create, body: wire.CreateInvitation) -> Response:
    """A code with which one person joins; it is in this answer and nowhere else."""

    def make(tx: Tx) -> wire.IssuedInvitation:
        made = invitations.invite(tx, caller, body.role, body.note, body.days)
        plain = wire.Invitation.model_validate(made.invitation).model_dump()
        return wire.IssuedInvitation(**plain, code=made.code)

    def once(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "code": None}

    return create(caller, body, make, once=once)


@router.delete(_IN_PROJECT + "/{invitation}", status_code=204)
def withdraw(state: State, caller: ProjectAdmin, invitation: Annotated[str, Path(max_length=64)]) -> None:
    """Withdraw an invitation that nobody accepted yet."""
    with state.store.write() as tx:
        invitations.withdraw(tx, caller, invitation)


@router.post("/invitations/accept", response_model=wire.Accepted, status_code=201, dependencies=[anyone])
def accept(request: Request, state: State, body: wire.AcceptInvitation) -> wire.Accepted:
    """Join with a code as a new person; the first token is in this answer and nowhere else."""
    try:
        with state.store.write() as tx:
            project, member, token = invitations.accept(tx, body.code.strip(), body.name)
    except Unauthenticated:
        state.failed_logins.note(address_of(request.scope))
        raise
    return wire.Accepted(project=project.name, member=shown(member), token=issued(token))


@router.post("/invitations/join", response_model=wire.Joined)
def join(request: Request, state: State, caller: SignedIn, body: wire.JoinProject) -> wire.Joined:
    """Join with a code as who you are."""
    try:
        with state.store.write() as tx:
            project, member = invitations.join(tx, caller, body.code.strip())
    except Unauthenticated:
        state.failed_logins.note(address_of(request.scope))
        raise
    return wire.Joined(project=project.name, member=shown(member))

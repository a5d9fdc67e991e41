"""Invitations: a project's admin hands out a code, and whoever has it joins, once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from easel.declare.names import slug
from easel.declare.page import PageRequest
from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound, Unauthenticated
from easel.flow.issue_token import IssuedToken, issue_token
from easel.flow.secrets import hashed
from easel.ids import ProjectId, TokenId
from easel.records.identity import Caller, Invitation, Membership, Project
from easel.store import identity, people
from easel.store.engine import Tx
from easel.store.paging import Page

PREFIX = "easel-invitation_"


def list_invitations(tx: Tx, caller: Caller, page: PageRequest) -> Page[Invitation]:
    """Returns the invitations of the caller's project, without their codes."""
    return people.list_invitations(tx, caller.project_id, page)


@dataclass(frozen=True, slots=True)
class IssuedInvitation:
    """`code` exists only here: it is shown once."""

    invitation: Invitation
    code: str


def invite(tx: Tx, caller: Caller, role: Role, note: str, days: float) -> IssuedInvitation:
    if len(note) > 200:
        raise InvalidInput("the note has more than 200 characters: write less")
    code = PREFIX + secrets.token_urlsafe(32)
    until = tx.now + timedelta(days=days)
    made = people.add_invitation(tx, caller.project_id, role, note, hashed(code), caller.user.id, until)
    body = {"role": role.value, "note": note}
    tx.emit("invitation.made", made.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return IssuedInvitation(made, code)


def withdraw(tx: Tx, caller: Caller, invitation_id: str) -> None:
    """Withdrawing twice is withdrawing once; one that was accepted stays accepted."""
    found = people.get_invitation(tx, caller.project_id, invitation_id)
    if people.end_invitation(tx, found.id, None):
        tx.emit("invitation.withdrawn", found.id, project_id=caller.project_id, actor=caller.user.id)


def join(tx: Tx, caller: Caller, code: str) -> tuple[Project, Membership]:
    """Lets somebody who has an account already join the project; a higher role that they have stays."""
    if caller.user.service or caller.scope is not None:
        raise Denied("only a person joins a project, with a token that may do everything")
    invitation, project = _open(tx, code)
    if project.id in identity.projects_of(tx, caller.user.id):
        raise Conflict(f"you are in {project.name} already: leave the invitation to somebody else")
    identity.put_member(tx, project.id, caller.user.id, invitation.role)
    _accepted(tx, invitation, caller)
    return project, identity.get_member(tx, project.id, caller.user.id)


def accept(tx: Tx, code: str, name: str) -> tuple[Project, Membership, IssuedToken]:
    """A new person, at home in the project that invited, with a first token."""
    invitation, project = _open(tx, code)
    user = identity.add_user(tx, slug(name, "user"), home=project.id)
    identity.put_member(tx, project.id, user.id, invitation.role)
    caller = Caller(user, TokenId(""), project, invitation.role)
    body = {"name": user.name, "role": invitation.role.value}
    tx.emit("user.created", user.id, project_id=project.id, actor=user.id, body=body)
    token = issue_token(tx, caller, user.id, "first", None)
    _accepted(tx, invitation, caller)
    return project, Membership(user, invitation.role, tx.now), token


def _open(tx: Tx, code: str) -> tuple[Invitation, Project]:
    invitation = people.open_invitation(tx, hashed(code))
    project = None if invitation is None else identity.find_project(tx, ProjectId(invitation.project_id))
    if invitation is None or project is None:
        raise Unauthenticated("this invitation is not valid, was used, or has ended: ask for another")
    if project.archived_at is not None:
        raise NotFound("the project that invited you is closed: ask its admin")
    return invitation, project


def _accepted(tx: Tx, invitation: Invitation, caller: Caller) -> None:
    if not people.end_invitation(tx, invitation.id, caller.user.id):
        raise Conflict("this invitation was used at the same moment: ask for another")
    body = {"role": invitation.role.value, "invited_by": invitation.created_by}
    where = ProjectId(invitation.project_id)
    tx.emit("invitation.accepted", invitation.id, project_id=where, actor=caller.user.id, body=body)

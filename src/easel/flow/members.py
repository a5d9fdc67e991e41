"""Who belongs to a project: add a person, change a role, let somebody go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from easel.declare.names import slug
from easel.declare.page import PageRequest
from easel.declare.roles import Role
from easel.errors import Conflict, NotFound
from easel.flow.issue_token import IssuedToken, issue_token
from easel.ids import UserId
from easel.records.identity import Caller, Membership
from easel.store import identity
from easel.store.engine import Tx
from easel.store.paging import Page


def list_members(tx: Tx, caller: Caller, page: PageRequest) -> Page[Membership]:
    """Returns the people of the caller's project."""
    return identity.list_members(tx, caller.project_id, page)


def get_member(tx: Tx, caller: Caller, name_or_id: str) -> Membership:
    """Returns one of them, by name or id; refuses whoever is not of this project."""
    return identity.get_member(tx, caller.project_id, name_or_id)


def names_of(tx: Tx, user_ids: Sequence[str]) -> dict[str, str]:
    """Returns the names of these users, by id."""
    return identity.names_of(tx, user_ids)


def create_user(
    tx: Tx, caller: Caller, name: str, role: Role, token_expires_at: datetime | None
) -> tuple[Membership, IssuedToken]:
    """A new person, at home in this project, with a first token to hand over."""
    user = identity.add_user(tx, slug(name, "user"), home=caller.project_id)
    identity.put_member(tx, caller.project_id, user.id, role)
    _tell(tx, caller, "user.created", user.id, {"name": user.name, "role": role.value})
    token = issue_token(tx, caller, user.id, "first", token_expires_at)
    return Membership(user, role, tx.now), token


def admit(tx: Tx, caller: Caller, user_id: UserId, role: Role) -> Membership:
    """Let somebody who exists already into this project. Only a platform admin knows who exists elsewhere."""
    user = identity.find_user(tx, user_id)
    if user is None:
        raise NotFound(f"no user {user_id[:80]!r}")
    identity.put_member(tx, caller.project_id, user.id, role)
    _tell(tx, caller, "member.admitted", user.id, {"role": role.value})
    return identity.get_member(tx, caller.project_id, user.id)


def change_role(tx: Tx, caller: Caller, name_or_id: str, role: Role) -> Membership:
    member = identity.get_member(tx, caller.project_id, name_or_id)
    if role is not Role.ADMIN:
        _keep_one_admin(tx, caller, member)
    identity.put_member(tx, caller.project_id, member.user.id, role)
    _tell(tx, caller, "member.role_changed", member.user.id, {"role": role.value})
    return Membership(member.user, role, member.since)


def remove(tx: Tx, caller: Caller, name_or_id: str) -> None:
    member = identity.get_member(tx, caller.project_id, name_or_id)
    _keep_one_admin(tx, caller, member)
    identity.remove_member(tx, caller.project_id, member.user.id)
    _tell(tx, caller, "member.removed", member.user.id, {"name": member.user.name})


def _keep_one_admin(tx: Tx, caller: Caller, member: Membership) -> None:
    if caller.user.platform_admin or member.role is not Role.ADMIN:
        return
    if identity.admins_of(tx, caller.project_id) == [member.user.id]:
        raise Conflict(
            f"{member.user.name} is the only admin of this project: make somebody else admin first"
        )


def _tell(tx: Tx, caller: Caller, kind: str, subject: str, body: dict[str, object]) -> None:
    tx.emit(kind, subject, project_id=caller.project_id, actor=caller.user.id, body=body)

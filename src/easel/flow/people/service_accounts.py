"""Service accounts: programs with a role in a project and tokens of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from easel.declare.names import slug
from easel.declare.page import PageRequest
from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.flow.issue_token import IssuedToken, issue_token, make_token, within_own
from easel.records.identity import Caller, Membership, Token, TokenScope, User
from easel.store import identity, people
from easel.store.engine import Tx

LONGEST = timedelta(days=366)
"""No token of a program lives longer: rotate it."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    member: Membership
    tokens: Sequence[Token]


def create(tx: Tx, caller: Caller, name: str, role: Role) -> Membership:
    user = identity.add_user(tx, slug(name, "service account"), home=caller.project_id, service=True)
    identity.put_member(tx, caller.project_id, user.id, role)
    body = {"name": user.name, "role": role.value, "service": True}
    tx.emit("user.created", user.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return Membership(user, role, tx.now)


def list_accounts(tx: Tx, caller: Caller) -> list[ServiceAccount]:
    """Returns the accounts of the project, each with its tokens, newest first."""
    found = people.list_service_accounts(tx, caller.project_id)
    return [
        ServiceAccount(
            member,
            identity.list_tokens(tx, member.user.id, PageRequest(limit=200)).items,
        )
        for member in found
    ]


def find(tx: Tx, caller: Caller, name: str) -> Membership:
    """A service account that is at home in the caller's project."""
    member = identity.get_member(tx, caller.project_id, name)
    if not member.user.service or people.home_of(tx, member.user.id) != caller.project_id:
        raise NotFound(f"no service account {name[:80]!r}: `easel service-accounts ls` lists them")
    return member


def issue(
    tx: Tx,
    caller: Caller,
    account: str,
    name: str,
    verbs: Sequence[Verb],
    projects: Sequence[str],
    days: float,
) -> IssuedToken:
    """A token that may do these verbs in these projects (none named: in the account's own), for so many days."""
    user = find(tx, caller, account).user
    if user.disabled_at is not None:
        raise Conflict(f"{user.name} is disabled: enable it first (`easel users enable {user.name}`)")
    if not 0 < days <= LONGEST.days:
        raise InvalidInput(f"a token of a service account lives at most {LONGEST.days} days: rotate it")
    if identity.projects_of(tx, user.id) != [caller.project_id] and not caller.user.platform_admin:
        raise Denied(f"{user.name} may enter more than this project: ask a platform admin for its token")
    scope = scope_of(tx, user, verbs, projects or [_name_of(caller)])
    return issue_token(tx, caller, user.id, name, tx.now + timedelta(days=days), scope)


def rotate(tx: Tx, caller: Caller, account: str, token_id: str, overlap: timedelta) -> IssuedToken:
    """A new token with the scope and the life of an old one, which works on for `overlap`."""
    user = find(tx, caller, account).user
    old = identity.find_token(tx, token_id)
    if old is None or old.user_id != user.id:
        raise NotFound(
            f"{user.name} has no token {token_id[:80]!r}: `easel service-accounts show {user.name}`"
        )
    if old.revoked_at is not None:
        raise Conflict("this token was revoked: issue a new one instead")
    life = (old.expires_at - old.created_at) if old.expires_at else LONGEST
    # A program rotates its own token with itself: what it gets lives longer than what it showed.
    made = make_token(tx, caller, user.id, old.name, tx.now + life, within_own(caller, old.scope))
    identity.end_token(tx, old.id, tx.now + overlap)
    body = {"user": user.id, "new": made.token.id, "until": (tx.now + overlap).isoformat()}
    tx.emit("token.rotated", old.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return made


def revoke(tx: Tx, caller: Caller, account: str, token_id: str) -> None:
    user = find(tx, caller, account).user
    token = identity.find_token(tx, token_id)
    if token is None or token.user_id != user.id:
        raise NotFound(
            f"{user.name} has no token {token_id[:80]!r}: `easel service-accounts show {user.name}`"
        )
    if identity.revoke_token(tx, token.id):
        body = {"user": user.id}
        tx.emit("token.revoked", token.id, project_id=caller.project_id, actor=caller.user.id, body=body)


def scope_of(tx: Tx, user: User, verbs: Sequence[Verb], projects: Sequence[str]) -> TokenScope | None:
    """The scope that these words mean for this user; none where neither is narrowed."""
    if not verbs and not projects:
        return None
    mine = identity.list_projects(tx, user, PageRequest(limit=500)).items
    known = {project.name: project.id for project in mine}
    missing = next((name for name in projects if name not in known), None)
    if missing is not None:
        raise NotFound(f"{user.name} is in no project {missing[:80]!r}")
    places = tuple(sorted(known[name] for name in set(projects))) if projects else None
    return TokenScope(frozenset(verbs) or frozenset(Verb), places)


def _name_of(caller: Caller) -> str:
    assert caller.project is not None
    return caller.project.name

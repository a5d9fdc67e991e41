"""Tokens: make one, revoke one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from easel.declare.names import label
from easel.declare.page import PageRequest
from easel.errors import Denied, InvalidInput, NotFound
from easel.flow.secrets import hashed, new_token
from easel.ids import UserId
from easel.records.identity import Caller, Token, TokenScope
from easel.store import identity
from easel.store.engine import Tx
from easel.store.paging import Page
from easel.store.sign_on import signs_on

SIGN_ON_TOKEN_LASTS = timedelta(hours=24)
"""How long after a log-in elsewhere the last token ends that came of it."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """`secret` exists only here: it is shown once and cannot be had again."""

    token: Token
    secret: str


def list_tokens(tx: Tx, caller: Caller, page: PageRequest) -> Page[Token]:
    """Returns the caller's own tokens, without their secrets."""
    return identity.list_tokens(tx, caller.user.id, page)


def issue_token(
    tx: Tx,
    caller: Caller,
    user_id: UserId,
    name: str,
    expires_at: datetime | None,
    scope: TokenScope | None = None,
) -> IssuedToken:
    """A new token. One that is made with a token may do no more than that, and for one's own user lives no longer."""
    scope = within_own(caller, scope)
    if expires_at is not None and expires_at <= tx.now:
        raise InvalidInput("expires_at lies in the past: the token would never work")
    if user_id == caller.user.id and caller.until is not None:
        # Else whoever holds a token that ends would renew it for ever: those who left a group, and thieves.
        expires_at = min(expires_at or caller.until, caller.until)
    if signs_on(tx, user_id):
        latest = tx.now + SIGN_ON_TOKEN_LASTS
        expires_at = min(expires_at or latest, latest)
    return make_token(tx, caller, user_id, name, expires_at, scope)


def within_own(caller: Caller, scope: TokenScope | None) -> TokenScope | None:
    """The scope that was asked for, or the caller's own; refused where it is wider than that."""
    if caller.scope is None:
        return scope
    if scope is not None and not scope.within(caller.scope):
        raise Denied("your own token may not do all this: ask for less, or use one that may")
    return scope or caller.scope


def make_token(
    tx: Tx,
    caller: Caller,
    user_id: UserId,
    name: str,
    expires_at: datetime | None,
    scope: TokenScope | None,
) -> IssuedToken:
    """A new token with just this life and scope: who may have it was asked before."""
    secret = new_token()
    token = identity.add_token(tx, user_id, label(name, "token name"), hashed(secret), expires_at, scope)
    # Not under a project: a token opens all projects of its user, so it is the platform's business.
    tx.emit("token.issued", token.id, actor=caller.user.id, body={"user": user_id, "name": token.name})
    return IssuedToken(token, secret)


def issue_for_member(
    tx: Tx, caller: Caller, name_or_id: str, name: str, expires_at: datetime | None
) -> IssuedToken:
    """An admin makes a token for somebody of the project, e.g. when theirs is lost.

    A token opens everything its user may enter, so a project's admin may do this only for people who are
    in no other project; otherwise it would be a way into those.
    """
    user = identity.get_member(tx, caller.project_id, name_or_id).user
    if user.service:
        raise Denied(f"{user.name} is a program: `easel service-accounts token {user.name}` makes its tokens")
    if signs_on(tx, user.id) and user.id != caller.user.id:
        raise Denied(
            f"{user.name} signs on elsewhere and logs in themselves: a token made here would outlast that"
        )
    elsewhere = user.platform_admin or identity.projects_of(tx, user.id) != [caller.project_id]
    if elsewhere and not caller.user.platform_admin:
        raise Denied(f"{user.name} may enter more than this project: ask a platform admin for their token")
    return issue_token(tx, caller, user.id, name, expires_at)


def revoke_token(tx: Tx, caller: Caller, token_id: str) -> None:
    """Own tokens, or any for a platform admin. Revoking twice is revoking once."""
    token = identity.find_token(tx, token_id)
    if token is None or (token.user_id != caller.user.id and not caller.user.platform_admin):
        raise NotFound(f"you have no token {token_id[:80]!r}: `easel tokens ls` lists yours")
    if identity.revoke_token(tx, token.id):
        tx.emit("token.revoked", token.id, actor=caller.user.id, body={"user": token.user_id})

"""Who calls, and what they may do here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from easel.declare.roles import Role
from easel.errors import Denied, NotFound, Unauthenticated
from easel.flow.secrets import hashed
from easel.records.identity import Caller
from easel.store import identity
from easel.store.engine import Store


class Level(IntEnum):
    """What a route asks of its caller, from least to most."""

    ANYONE = 0
    SIGNED_IN = 1
    MEMBER = 2
    PROJECT_ADMIN = 3
    PLATFORM_ADMIN = 4
    WORKER = 5
    """No person at all: a worker with a token of its own."""


@dataclass(frozen=True, slots=True)
class Secret:
    text: str
    is_session: bool


TOUCH_EVERY = timedelta(hours=1)


def authenticate(store: Store, secret: Secret, level: Level, project: str | None) -> Caller:
    """The caller, or the reason why not. A project that the caller may not enter does not exist for them."""
    with store.read() as tx:
        found = identity.check_secret(tx, hashed(secret.text), project, session=secret.is_session)
        now = tx.now
    if found is None:
        raise Unauthenticated("the token or session is not valid, or has ended: log in again")
    caller = authorise(found, level, project)
    if found.token_touched is None or now - found.token_touched > TOUCH_EVERY:
        # "Last used" to the hour is enough to find forgotten tokens, and spares a write per request.
        with store.write() as tx:
            identity.touch_token(tx, found.token_id)
    return caller


def authorise(found: identity.Credential, level: Level, project: str | None) -> Caller:
    """Pure: may this credential do something of this level, in this project?"""
    user = found.user
    role = Role.ADMIN if user.platform_admin and found.project else found.role
    if project is not None and role is None:
        raise NotFound(f"no project {project[:80]!r}, or not yours: `easel projects ls` lists yours")
    if level is Level.PLATFORM_ADMIN and not user.platform_admin:
        raise Denied("only a platform admin may do this: ask the person who runs this Easel")
    if level is Level.PROJECT_ADMIN and role is not Role.ADMIN:
        raise Denied("only an admin of this project may do this: ask one (`easel users ls` shows who)")
    return Caller(user, found.token_id, found.project, role)

"""Who calls, and what they may do here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.errors import Conflict, Denied, NotFound, Unauthenticated
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


@dataclass(frozen=True, slots=True)
class Act:
    """What a call does. `even_archived`: also in a project that can otherwise only be read."""

    verb: Verb = Verb.READ
    even_archived: bool = False


LOOK = Act()
TOUCH_EVERY = timedelta(hours=1)


def authenticate(
    store: Store,
    secret: Secret,
    level: Level,
    project: str | None,
    act: Act = LOOK,
    known: Callable[[identity.Credential], None] = lambda _credential: None,
) -> Caller:
    """The caller, or the reason why not. A project that the caller may not enter does not exist for them."""
    with store.glance() as tx:
        found = identity.check_secret(tx, hashed(secret.text), project, session=secret.is_session)
        now = tx.now
    if found is None:
        raise Unauthenticated("the token or session is not valid, or has ended: log in again")
    known(found)  # whose it is, also when it may not do this
    caller = authorise(found, level, project, act)
    if found.token_touched is None or now - found.token_touched > TOUCH_EVERY:
        # "Last used" to the hour is enough to find forgotten tokens, and spares a write per request.
        with store.write() as tx:
            identity.touch_token(tx, found.token_id)
    return caller


def whose(store: Store, secret: Secret | None) -> str | None:
    """The id of the user whose token or session this is; None for one that is not valid."""
    if secret is None:
        return None
    with store.glance() as tx:
        found = identity.check_secret(tx, hashed(secret.text), None, session=secret.is_session)
    return None if found is None else found.user.id


def authorise(found: identity.Credential, level: Level, project: str | None, act: Act = LOOK) -> Caller:
    """Pure: may this credential do something of this level, in this project?"""
    user, scope = found.user, found.scope
    role = Role.ADMIN if user.platform_admin and found.project else found.role
    if scope is not None and scope.projects is not None and found.project:
        role = role if found.project.id in scope.projects else None
    if project is not None and role is None:
        raise NotFound(f"no project {project[:80]!r}, or not yours: `easel projects ls` lists yours")
    if level is Level.PLATFORM_ADMIN and not user.platform_admin:
        raise Denied("only a platform admin may do this: ask the person who runs this Easel")
    if level is Level.PROJECT_ADMIN and role is not Role.ADMIN:
        raise Denied("only an admin of this project may do this: ask one (`easel users ls` shows who)")
    if scope is not None and act.verb not in scope.verbs:
        may = ", ".join(sorted(scope.verbs))
        raise Denied(f"this token may only {may}, and this call would {act.verb.value}: use another token")
    if scope is not None and scope.projects is not None and project is None and act.verb is not Verb.READ:
        raise Denied("this token is for some projects only, and this call is about none of them")
    if found.project and found.project.archived_at and act.verb is not Verb.READ and not act.even_archived:
        raise Conflict(
            f"{found.project.name} is archived and can only be read: `easel projects reopen {found.project.name}`"
        )
    return Caller(user, found.token_id, found.project, role, scope, found.until)

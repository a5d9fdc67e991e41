"""Queries on who signs on elsewhere: subjects of providers, browsers on their way, codes of command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete, func, insert, select, update

from easel.declare.roles import Role
from easel.ids import ProjectId, TokenId, UserId
from easel.records.identity import Project, User
from easel.store import identity
from easel.store.engine import Tx
from easel.store.schema.identity import (
    device_logins,
    identities,
    memberships,
    projects,
    sessions,
    sign_ons,
    tokens,
    users,
)

_HOME = "sign-on:"


def home(provider: str) -> str:
    """Where the names of a provider's people are unique."""
    return f"{_HOME}{provider}"[:40]


def signs_on(tx: Tx, user_id: UserId) -> bool:
    """Whether the user's rights come from a provider."""
    mine = (users.c.id == user_id, users.c.home.startswith(_HOME))
    return tx.execute(select(users.c.id).where(*mine)).first() is not None


def find(tx: Tx, provider: str, subject: str) -> User | None:
    query = select(identities.c.user_id).where(
        identities.c.provider == provider, identities.c.subject == subject
    )
    found = tx.execute(query).scalar_one_or_none()
    return None if found is None else identity.find_user(tx, UserId(found))


def provider_of(tx: Tx, user_id: UserId) -> str | None:
    query = select(identities.c.provider).where(identities.c.user_id == user_id)
    return tx.execute(query.limit(1)).scalar_one_or_none()


@dataclass(frozen=True, slots=True)
class KnownAt:
    """Which provider vouches for somebody, with which groups at their last log-in there."""

    provider: str
    groups: tuple[str, ...]
    last_at: datetime


def known_at(tx: Tx, user_ids: Sequence[UserId]) -> dict[UserId, KnownAt]:
    """Returns where each of these signs on; nothing for those who have only tokens."""
    query = select(identities).where(identities.c.user_id.in_(user_ids)).order_by(identities.c.last_at)
    return {
        UserId(row.user_id): KnownAt(row.provider, tuple(row.groups), row.last_at)
        for row in tx.execute(query)
    }


def remember(tx: Tx, provider: str, subject: str, user_id: UserId, groups: Sequence[str]) -> None:
    mine = (identities.c.provider == provider, identities.c.subject == subject)
    new = {"groups": list(groups), "last_at": tx.now}
    if tx.execute(update(identities).where(*mine).values(**new)).rowcount == 0:
        key = {"provider": provider, "subject": subject, "user_id": user_id, "created_at": tx.now}
        tx.execute(insert(identities).values(**key, **new))


def memberships_by(tx: Tx, provider: str, user_id: UserId) -> dict[ProjectId, Role]:
    """The memberships that a provider's groups gave."""
    query = select(memberships.c.project_id, memberships.c.role).where(
        memberships.c.user_id == user_id, memberships.c.source == provider
    )
    return {row.project_id: Role(row.role) for row in tx.execute(query)}


def is_local_member(tx: Tx, project_id: ProjectId, user_id: UserId) -> bool:
    """Whether somebody here made them a member: a provider does not change that."""
    query = select(memberships.c.user_id).where(
        memberships.c.project_id == project_id,
        memberships.c.user_id == user_id,
        memberships.c.source.is_(None),
    )
    return tx.execute(query).first() is not None


def projects_named(tx: Tx, names: Sequence[str]) -> list[Project]:
    return [Project(*row) for row in tx.execute(select(*projects.c).where(projects.c.name.in_(names)))]


@dataclass(frozen=True, slots=True)
class SignOn:
    """A browser that was sent to a provider."""

    provider: str
    nonce: str
    verifier: str
    next: str


def begin(tx: Tx, state_hash: str, new: SignOn, lasts: timedelta) -> None:
    tx.execute(delete(sign_ons).where(sign_ons.c.expires_at <= tx.now))
    values = {"provider": new.provider, "nonce": new.nonce, "verifier": new.verifier, "next": new.next}
    tx.execute(insert(sign_ons).values(state_hash=state_hash, expires_at=tx.now + lasts, **values))


def take(tx: Tx, state_hash: str) -> SignOn | None:
    """The sign-on of this state, which is gone from now on."""
    query = select(sign_ons).where(sign_ons.c.state_hash == state_hash, sign_ons.c.expires_at > tx.now)
    row = tx.execute(query).one_or_none()
    gone = tx.execute(delete(sign_ons).where(sign_ons.c.state_hash == state_hash)).rowcount
    if row is None or gone != 1:
        return None
    return SignOn(row.provider, row.nonce, row.verifier, row.next)


def end_sessions(
    tx: Tx, provider: str, subject: str | None, session: str | None, before: datetime, named: str
) -> list[UserId]:
    """Ends sessions of a provider's people that were opened before a moment: all of a subject, or one by its `sid`.

    The tokens that were made for these sessions alone, whose names begin with `named`, end too.
    Returns whose they were, one for each session.
    """
    query = (
        select(tokens.c.user_id, sessions.c.secret_hash, tokens.c.id)
        .join(tokens, tokens.c.id == sessions.c.token_id)
        .join(identities, identities.c.user_id == tokens.c.user_id)
        .where(identities.c.provider == provider, sessions.c.created_at < before)
        .where(tokens.c.revoked_at.is_(None), tokens.c.name.startswith(named, autoescape=True))
    )
    if subject is not None:
        query = query.where(identities.c.subject == subject)
    if session is not None:
        query = query.where(sessions.c.sid == session)
    found = tx.execute(query).all()
    for _, secret_hash, token_id in found:
        tx.execute(delete(sessions).where(sessions.c.secret_hash == secret_hash))
        identity.revoke_token(tx, token_id)
    return [UserId(user_id) for user_id, _, _ in found]


class DeviceState(StrEnum):
    WAITING = "waiting"
    ALLOWED = "allowed"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    device_hash: str
    user_code: str
    client: str
    address: str
    created_at: datetime
    expires_at: datetime
    asked_at: datetime | None
    state: DeviceState
    user_id: UserId | None
    token_id: TokenId | None


def add_device(tx: Tx, device_hash: str, user_code: str, client: str, address: str, lasts: timedelta) -> None:
    tx.execute(delete(device_logins).where(device_logins.c.expires_at <= tx.now))
    tx.execute(
        insert(device_logins).values(
            device_hash=device_hash,
            user_code=user_code,
            client=client,
            address=address,
            created_at=tx.now,
            expires_at=tx.now + lasts,
            state=DeviceState.WAITING.value,
        )
    )


def count_devices(tx: Tx) -> int:
    return int(tx.execute(select(func.count()).select_from(device_logins)).scalar_one())


def device(tx: Tx, *, device_hash: str | None = None, user_code: str | None = None) -> DeviceLogin | None:
    query = select(device_logins).where(device_logins.c.expires_at > tx.now)
    if device_hash is not None:
        query = query.where(device_logins.c.device_hash == device_hash)
    else:
        query = query.where(device_logins.c.user_code == user_code)
    row = tx.execute(query).one_or_none()
    if row is None:
        return None
    return DeviceLogin(**{**row._mapping, "state": DeviceState(row.state)})


def answer_device(tx: Tx, device_hash: str, state: DeviceState, user_id: UserId, token_id: TokenId) -> bool:
    """Whether this call answered it; `token_id` is what the person showed who did."""
    open_one = (
        device_logins.c.device_hash == device_hash,
        device_logins.c.state == DeviceState.WAITING.value,
    )
    changed = (
        update(device_logins).where(*open_one).values(state=state.value, user_id=user_id, token_id=token_id)
    )
    return tx.execute(changed).rowcount == 1


def touch_device(tx: Tx, device_hash: str) -> None:
    tx.execute(
        update(device_logins).where(device_logins.c.device_hash == device_hash).values(asked_at=tx.now)
    )


def end_device(tx: Tx, device_hash: str) -> bool:
    """Whether this call ended it: a code is traded once."""
    return tx.execute(delete(device_logins).where(device_logins.c.device_hash == device_hash)).rowcount == 1

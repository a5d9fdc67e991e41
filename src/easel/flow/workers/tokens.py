"""Credentials of workers: made and revoked by platform admins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from easel.declare.names import label
from easel.errors import Denied, InvalidInput, Unauthenticated
from easel.flow.secrets import hashed, new_token
from easel.ids import UserId
from easel.records.worker import WorkerToken
from easel.store import worker_tokens
from easel.store.engine import Store, Tx


@dataclass(frozen=True, slots=True)
class IssuedWorkerToken:
    """`secret` exists only here: it is shown once and cannot be had again."""

    token: WorkerToken
    secret: str


def issue(tx: Tx, actor: UserId | None, name: str, expires_at: datetime | None = None) -> IssuedWorkerToken:
    if expires_at is not None and expires_at <= tx.now:
        raise InvalidInput("expires_at lies in the past: the token would never work")
    secret = new_token()
    made = worker_tokens.add(tx, label(name, "token name"), hashed(secret), actor, expires_at)
    tx.emit("worker_token.issued", made.id, actor=actor, body={"name": made.name})
    return IssuedWorkerToken(made, secret)


def list_tokens(tx: Tx) -> list[WorkerToken]:
    """Returns all tokens of workers, without their secrets."""
    return worker_tokens.list_tokens(tx)


def revoke(tx: Tx, actor: UserId, token_id: str) -> None:
    """Revokes a token at once; what its workers had is tried again elsewhere."""
    if worker_tokens.revoke(tx, token_id):
        tx.emit("worker_token.revoked", token_id, actor=actor)


def check(store: Store, secret_hash: str) -> str:
    """The id of the worker token, or the reason why not."""
    with store.write() as tx:
        found = worker_tokens.valid(tx, [secret_hash]).get(secret_hash)
        personal = found is None and worker_tokens.is_personal(tx, secret_hash)
    if found is None:
        raise refusal(personal)
    return found


def refusal(personal: bool) -> Denied | Unauthenticated:
    if personal:
        return Denied("this is a person's token: workers need one of their own, `easel workers token NAME`")
    return Unauthenticated(
        "the worker's token is not valid, or was revoked: ask a platform admin for another"
    )

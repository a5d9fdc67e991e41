"""Queries on the credentials of workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import insert, or_, select, update

from easel.errors import NotFound
from easel.ids import UserId
from easel.records.worker import WorkerToken
from easel.store.engine import AnyRow, Tx
from easel.store.schema.identity import tokens
from easel.store.schema.workers import worker_tokens, workers
from easel.store.upsert import is_in

_TOKEN = tuple(c for c in worker_tokens.c if c.name not in ("secret_hash", "made_by"))
TOUCH_EVERY = timedelta(hours=1)


def add(
    tx: Tx, name: str, secret_hash: str, made_by: UserId | None, expires_at: datetime | None
) -> WorkerToken:
    made = WorkerToken(tx.mint("wtk"), name, tx.now, expires_at, None, None)
    tx.execute(
        insert(worker_tokens).values(
            id=made.id,
            name=name,
            secret_hash=secret_hash,
            made_by=made_by,
            created_at=tx.now,
            expires_at=expires_at,
        )
    )
    return made


def list_tokens(tx: Tx) -> list[WorkerToken]:
    return [_token(row) for row in tx.execute(select(*_TOKEN).order_by(worker_tokens.c.created_at))]


def valid(tx: Tx, hashes: Sequence[str]) -> dict[str, str]:
    """The ids of those that may still be used, by the hash of their secret."""
    query = select(worker_tokens).where(
        is_in(tx, worker_tokens.c.secret_hash, sorted(set(hashes))),
        worker_tokens.c.revoked_at.is_(None),
        or_(worker_tokens.c.expires_at.is_(None), worker_tokens.c.expires_at > tx.now),
    )
    found = list(tx.execute(query))
    stale = [row.id for row in found if row.last_used_at is None or tx.now - row.last_used_at > TOUCH_EVERY]
    if stale:
        tx.execute(update(worker_tokens).where(worker_tokens.c.id.in_(stale)).values(last_used_at=tx.now))
    return {row.secret_hash: row.id for row in found}


def is_personal(tx: Tx, secret_hash: str) -> bool:
    """Whether it is a person's token, which is not for workers."""
    return tx.execute(select(tokens.c.id).where(tokens.c.secret_hash == secret_hash)).first() is not None


def revoke(tx: Tx, token_id: str) -> bool:
    """Revokes a token, with which its workers have left; returns whether this call did."""
    row = tx.execute(select(*_TOKEN).where(worker_tokens.c.id == token_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no worker token {token_id[:60]!r}: `easel workers tokens` lists them")
    if row.revoked_at is not None:
        return False
    tx.execute(update(worker_tokens).where(worker_tokens.c.id == token_id).values(revoked_at=tx.now))
    tx.execute(update(workers).where(workers.c.token_id == token_id).values(left=True))
    return True


def _token(row: AnyRow) -> WorkerToken:
    return WorkerToken(row.id, row.name, row.created_at, row.expires_at, row.revoked_at, row.last_used_at)

"""Answers to creates, kept so that a retry gets the first answer and makes nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, insert, select

from easel.ids import UserId
from easel.store.engine import AnyRow, Tx
from easel.store.schema.identity import idempotency

KEPT = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    fingerprint: str
    status: int
    body: Mapping[str, Any]


def recall(tx: Tx, user_id: UserId, key: str) -> StoredResponse | None:
    row: AnyRow | None = tx.execute(
        select(idempotency.c.fingerprint, idempotency.c.status, idempotency.c.answer).where(
            idempotency.c.user_id == user_id, idempotency.c.key == key
        )
    ).one_or_none()
    return StoredResponse(*row) if row else None


def remember(tx: Tx, user_id: UserId, key: str, answer: StoredResponse) -> None:
    tx.execute(
        insert(idempotency).values(
            user_id=user_id,
            key=key,
            fingerprint=answer.fingerprint,
            status=answer.status,
            answer=dict(answer.body),
            created_at=tx.now,
        )
    )


def forget_old(tx: Tx) -> int:
    return tx.execute(delete(idempotency).where(idempotency.c.created_at < tx.now - KEPT)).rowcount

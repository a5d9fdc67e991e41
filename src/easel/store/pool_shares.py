"""Queries on the least share of the pool that is kept for a kind of work."""

from __future__ import annotations

from sqlalchemy import select

from easel.ids import UserId
from easel.store.engine import Tx
from easel.store.schema.shares import pool_shares
from easel.store.upsert import insert_or

APPS = "apps"


def least(tx: Tx, kind: str = APPS) -> float:
    """Returns the share of the pool's cores that such work gets before others, while it waits for any; 0: none."""
    found = tx.execute(select(pool_shares.c.least).where(pool_shares.c.kind == kind)).scalar_one_or_none()
    return 0.0 if found is None else float(found)


def keep(tx: Tx, share: float, by: UserId, kind: str = APPS) -> None:
    """Keeps this share for such work from now on."""
    made = insert_or(tx, pool_shares).values(kind=kind, least=share, set_by=by, set_at=tx.now)
    names = ("least", "set_by", "set_at")
    tx.execute(
        made.on_conflict_do_update(
            index_elements=["kind"], set_={name: made.excluded[name] for name in names}
        )
    )

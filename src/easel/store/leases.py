"""Leases: which process does a singular job now, with a number that fences off the one before."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from easel.store.engine import Tx
from easel.store.schema.events import leases


def take(tx: Tx, name: str, holder: str, seconds: float) -> int | None:
    """Take or renew; returns the fence, or None while somebody else holds it."""
    until = tx.now + timedelta(seconds=seconds)
    row = tx.execute(select(leases).where(leases.c.name == name).with_for_update()).one_or_none()
    if row is None:
        try:
            with tx.nested():
                tx.execute(insert(leases).values(name=name, holder=holder, fence=1, expires_at=until))
        except IntegrityError:
            return None
        return 1
    if row.holder != holder and row.expires_at > tx.now:
        return None
    fence = row.fence if row.holder == holder else row.fence + 1
    tx.execute(
        update(leases).where(leases.c.name == name).values(holder=holder, fence=fence, expires_at=until)
    )
    return int(fence)


def stand(tx: Tx, name: str) -> tuple[str, int, datetime] | None:
    """Who holds it under which fence until when. It changes with each renewal."""
    row = tx.execute(select(leases).where(leases.c.name == name)).one_or_none()
    return (row.holder, int(row.fence), row.expires_at) if row else None


def seize(tx: Tx, name: str, holder: str, seconds: float, seen: tuple[str, int, datetime]) -> int | None:
    """Take it from a holder that has not renewed since it was `seen`, whatever the clocks say.

    For a standby that has watched by its own monotonic clock: a wall clock that was set back would keep a
    dead holder's lease alive.
    """
    until = tx.now + timedelta(seconds=seconds)
    taken = tx.execute(
        update(leases)
        .where(
            leases.c.name == name,
            leases.c.holder == seen[0],
            leases.c.fence == seen[1],
            leases.c.expires_at == seen[2],
        )
        .values(holder=holder, fence=seen[1] + 1, expires_at=until)
    )
    return seen[1] + 1 if taken.rowcount == 1 else None


def holds(tx: Tx, name: str, fence: int) -> bool:
    """Whether `fence` is still the latest: ask inside the transaction that acts under the lease."""
    return tx.execute(select(leases.c.fence).where(leases.c.name == name)).scalar_one_or_none() == fence


def release(tx: Tx, name: str, holder: str) -> None:
    """Give it back early, so that a standby need not wait."""
    tx.execute(
        update(leases).where(leases.c.name == name, leases.c.holder == holder).values(expires_at=tx.now)
    )

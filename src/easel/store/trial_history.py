"""What the trials of all apps came to, in the order in which they ended: what beliefs are learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, insert, select

from easel.records.tenant import PastTrial
from easel.store.engine import Tx
from easel.store.schema.tenants import trial_history

_ADD = insert(trial_history)
_COLUMNS = (
    trial_history.c.seq,
    trial_history.c.app_id,
    trial_history.c.metric,
    trial_history.c.candidate,
    trial_history.c.family,
    trial_history.c.promise,
    trial_history.c.guess_s,
    trial_history.c.quality,
    trial_history.c.seconds,
    trial_history.c.peak_mb,
    trial_history.c.examples,
    trial_history.c.share,
    trial_history.c.kind,
    trial_history.c.kind_s,
    trial_history.c.halved,
)
_LAST = select(func.coalesce(func.max(trial_history.c.seq), 0))


def add(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Results in their order."""
    if rows:
        tx.execute(_ADD, [dict(row) for row in rows])


def until(tx: Tx, seq: int) -> list[PastTrial]:
    """All up to number `seq`, in their order."""
    query = select(*_COLUMNS).where(trial_history.c.seq <= seq).order_by(trial_history.c.seq)
    return [PastTrial(*row) for row in tx.execute(query)]


def last(tx: Tx) -> int:
    return int(tx.execute(_LAST).scalar_one())

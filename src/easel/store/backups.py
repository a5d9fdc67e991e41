"""Queries on the plan for backups and on those that were made."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, insert, select, update

from easel.records.backup import BackupPlan, BackupRun
from easel.store.engine import Tx
from easel.store.schema.operate import backup_plans, backup_runs

_ONLY = 1


def plan(tx: Tx) -> BackupPlan | None:
    row = tx.execute(select(backup_plans)).first()
    if row is None:
        return None
    return BackupPlan(row.target, timedelta(seconds=row.every_s), row.keep, row.asked, row.since)


def set_plan(tx: Tx, target: str, every: timedelta, keep: int) -> None:
    remove_plan(tx)
    seconds = round(every.total_seconds())
    values = {
        "id": _ONLY,
        "target": target,
        "every_s": seconds,
        "keep": keep,
        "asked": False,
        "since": tx.now,
    }
    tx.execute(insert(backup_plans).values(**values))


def remove_plan(tx: Tx) -> bool:
    return bool(tx.execute(delete(backup_plans)).rowcount)


def ask(tx: Tx, asked: bool) -> bool:
    """Note that one is wanted now, or that it is being made; False where there is no plan."""
    return bool(tx.execute(update(backup_plans).values(asked=asked)).rowcount)


def begin(tx: Tx, target: str) -> int:
    made = tx.execute(
        insert(backup_runs).values(target=target, started_at=tx.now).returning(backup_runs.c.seq)
    )
    return int(made.scalar_one())


def end(tx: Tx, run: int, **found: object) -> None:
    """`name`, `rows`, `blobs` and `damaged` of one that was made, or the `error` that ended it."""
    tx.execute(update(backup_runs).where(backup_runs.c.seq == run).values(ended_at=tx.now, **found))


def runs(tx: Tx, limit: int = 20) -> list[BackupRun]:
    """The newest first."""
    query = select(backup_runs).order_by(backup_runs.c.seq.desc()).limit(limit)
    return [
        BackupRun(r.seq, r.target, r.started_at, r.ended_at, r.name, r.rows, r.blobs, r.damaged, r.error)
        for r in tx.execute(query)
    ]

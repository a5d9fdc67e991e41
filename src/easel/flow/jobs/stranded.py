"""Jobs that left their queue for devices which have gone since, or for which a budget has no room any more: they go
back, and hold neither slots nor devices."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from easel.flow.budgets import budget_of, spending_of
from easel.flow.jobs.launch import placeable
from easel.ids import JobId, ProjectId, UserId
from easel.price.budget import put_back as not_now
from easel.records.attempt import AttemptKey
from easel.store import billing, devices, job_queues, jobs, queue_now, reservations
from easel.store.engine import Store, Tx

AFTER = timedelta(seconds=2)
"""Whoever was let through less than this ago is not looked at: its device may be about to say that it has begun."""


def stranded(store: Store, leaving: Collection[str] = ()) -> list[AttemptKey]:
    """Attempts that no device has begun and that the connected ones could not hold; `leaving` were stopped already.

    A distributed job whose second device has left is one: it would keep a slot of its owner's, and after a while the
    devices that it waits for, until another comes.
    """
    with store.read() as tx:
        if not job_queues.launching_count(tx):
            return []
        pool = [one for one in devices.machines(tx) if one.open]
        able = placeable(pool, reservations.kept_now(tx))
        if able is None:
            return []
        return [
            AttemptKey(row.id, row.attempt)
            for row in queue_now.launching(tx)
            if row.launched_at is not None
            and row.launched_at <= tx.now - AFTER
            and str(AttemptKey(row.id, row.attempt)) not in leaving
            and not able((ProjectId(row.project_id), UserId(row.user_id)), row.spec)
        ]


def unaffordable(store: Store, stops: timedelta, leaving: Collection[str] = ()) -> list[AttemptKey]:
    """Attempts that no device has begun and for which a hard budget has no room any more: what runs has used it.

    `stops` is how long it takes to stop a job.
    """
    with store.read() as tx:
        hard = [row for row in billing.all_budgets(tx) if row.hard_stop]
        if not hard or not job_queues.launching_count(tx):
            return []
        back = set[str]()
        for row in hard:
            budget = budget_of(row)
            back |= {*not_now(budget, spending_of(tx, row.project_id, budget.period, stops))}
        if not back:
            return []
        found = (AttemptKey(row.id, row.attempt) for row in queue_now.launching(tx) if row.id in back)
        return [key for key in found if str(key) not in leaving]


def put_back(tx: Tx, found: Collection[AttemptKey]) -> frozenset[str]:
    """Notes it, and returns the keys of those that still wait for a device."""
    rows = jobs.rows(tx, [key.job_id for key in found])
    back = set()
    for key in found:
        row = rows.get(key.job_id)
        if row is None or row.attempt != key.attempt or row.state != "launching":
            continue
        back.add(str(key))
        project, user, body = ProjectId(row.project_id), UserId(row.user_id), {"attempt": key.attempt}
        tx.emit("job.put_back", JobId(row.id), project_id=project, actor=user, body=body)
    return frozenset(back)

"""Budgets of projects: set, look, refuse new jobs, say what may begin. (`flow/price/watch_budgets.py` stops jobs.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from easel.declare.resources import Resources
from easel.errors import QuotaExhausted
from easel.flow.prices import book_now, draw_bill, price_history
from easel.ids import ProjectId
from easel.price.bill import BillLine, PriceChange, micros_after
from easel.price.budget import (
    Budget,
    Period,
    Refuse,
    RunningSpend,
    Spending,
    admit,
)
from easel.price.budget import headroom as headroom_of
from easel.records.identity import Caller
from easel.store import billing, job_attempts, profiles
from easel.store.billing import KeptBudget
from easel.store.engine import Tx
from easel.store.upsert import lock

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
LOOKED_AT = timedelta(seconds=2)
"""How long a spent budget may go unnoticed: the ledger looks every second."""


def stops_in(grace_s: float) -> timedelta:
    """Returns how long a job may go on after its budget is spent: until somebody looks, and then the grace it has."""
    return LOOKED_AT + timedelta(seconds=grace_s)


USUALLY = stops_in(5.0)
"""For whoever only says why something waits: what launches and what stops jobs knows the setting."""

_LEAST = {"resources": asdict(Resources(0.5, 128))}


def set_budget(tx: Tx, caller: Caller, budget: Budget | None) -> None:
    """Set, change or (with None) remove the project's budget."""
    if budget is None:
        billing.drop_budget(tx, caller.project_id)
    else:
        billing.put_budget(
            tx,
            caller.project_id,
            {
                "limit_micros": budget.limit_micros,
                "period": budget.period.value,
                "warn_at": list(budget.warn_at),
                "hard_stop": budget.hard_stop,
            },
        )
    body = {"limit_micros": budget.limit_micros if budget else None}
    tx.emit("budget.set", caller.project_id, project_id=caller.project_id, actor=caller.user.id, body=body)


def find_budget(tx: Tx, project_id: ProjectId) -> Budget | None:
    """Returns the project's budget, or None."""
    kept = billing.find_budget(tx, project_id)
    return None if kept is None else budget_of(kept)


def budget_of(kept: KeptBudget) -> Budget:
    """Returns a stored budget as what decides."""
    return Budget(kept.limit_micros, Period(kept.period), tuple(kept.warn_at), kept.hard_stop)


def spending_of(tx: Tx, project_id: ProjectId, period: Period, stops: timedelta = USUALLY) -> Spending:
    """What the project was billed in the current period, and what its running jobs have run up in it.

    `stops` is how long it takes to stop them.
    """
    month = tx.now.strftime("%Y-%m") if period is Period.MONTH else None
    prices = price_history(tx)
    held = billing.held(tx, project_id)
    promised = profiles.promised_micros(tx, [row.job_id for row in held])

    def cost(spec: Mapping[str, Any], since: datetime, until: datetime) -> int:
        lines = draw_bill(spec, since, until, prices).lines
        return sum(line.micros for line in lines if month is None or line.month == month)

    running = []
    for row in held:
        until = max(tx.now, row.since)
        accrued = cost(row.spec, row.since, until)
        soon = cost(row.spec, row.since, until + stops) - accrued
        running.append(RunningSpend(row.job_id, accrued, promised.get(row.job_id, 0), soon))
    ended = sum(
        cost(row.spec, row.held_at, row.held_at + timedelta(seconds=row.seconds))
        for row in job_attempts.unbilled_of(tx, project_id)
    )
    billed = billing.billed_micros(tx, project_id, month) + ended
    begin = tuple(
        RunningSpend(job, 0, soon_micros=cost(spec, tx.now, tx.now + stops))
        for job, spec in billing.launching(tx, project_id)
    )
    return Spending(billed, tuple(running), profiles.waiting_micros(tx, project_id), begin)


def spent_after(tx: Tx, project_id: ProjectId, moment: datetime) -> int:
    """Millionths that the project's jobs ran up after a moment, those that still run included."""
    moment = min(max(moment, _EVER), tx.now)
    billed = [
        BillLine(row.start, row.seconds, row.per_hour, row.micros, row.book)
        for row in billing.lines_after(tx, project_id, moment)
    ]
    prices = price_history(tx)
    running = [
        line
        for row in billing.held(tx, project_id)
        for line in draw_bill(row.spec, row.since, max(tx.now, row.since), prices).lines
    ]
    return micros_after([*billed, *running], moment)


def check_admission(tx: Tx, caller: Caller, estimate_micros: int = 0) -> None:
    """Refuse what a hard budget has no room for. Those who ask at the same moment are answered one after another."""
    budget = find_budget(tx, caller.project_id)
    if budget is None:
        return
    lock(tx, f"budget {caller.project_id}")
    spending = spending_of(tx, caller.project_id, budget.period)
    reserve = micros_to_stop(_LEAST, tx.now, USUALLY, price_history(tx))
    answer = admit(budget, spending, estimate_micros, reserve, book_now(tx).currency)
    if isinstance(answer, Refuse):
        raise QuotaExhausted(answer.why)


def headroom(tx: Tx, stops: timedelta = USUALLY) -> dict[ProjectId, int]:
    """What each project with a hard budget may let begin now, in millionths: what that uses until it is stopped."""
    found: dict[ProjectId, int] = {}
    for row in billing.all_budgets(tx):
        project_id, budget = ProjectId(row.project_id), budget_of(row)
        if budget.hard_stop:
            found[project_id] = headroom_of(budget, spending_of(tx, project_id, budget.period, stops))
    return found


def micros_to_stop(
    spec: Mapping[str, Any], now: datetime, stops: timedelta, prices: Sequence[PriceChange]
) -> int:
    """What a job of this spec uses at least when it begins: until it is stopped."""
    return draw_bill(spec, now, now + stops, prices).micros


def spent_projects(tx: Tx, left: Mapping[ProjectId, int] | None = None) -> frozenset[ProjectId]:
    """Projects whose hard budget has no room for the smallest job: their queues wait until it is raised or the next
    period begins. `left` is the headroom of each, where the caller has looked."""
    left = headroom(tx) if left is None else left
    if not left:
        return frozenset()
    least = micros_to_stop(_LEAST, tx.now, USUALLY, price_history(tx))
    return frozenset(project for project, micros in left.items() if micros < max(least, 1))

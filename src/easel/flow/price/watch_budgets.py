"""Announces the shares of budgets that were passed, and stops the jobs of projects whose budget is spent."""

from __future__ import annotations

from datetime import timedelta

from easel.flow.budgets import budget_of, spending_of
from easel.flow.jobs.advance import columns_of, life_of
from easel.flow.prices import book_now
from easel.ids import ProjectId
from easel.price.budget import Period, Stop, Warn, watch
from easel.records.attempt import EndReason
from easel.run.lifecycle import KillRequested, step, to_json
from easel.store import billing, jobs
from easel.store.engine import Tx


def watch_budgets(tx: Tx, stops: timedelta) -> int:
    """Announce shares that were passed, and stop the jobs of projects whose hard budget is spent.

    `stops` is how long stopping takes.
    """
    acts = 0
    currency = book_now(tx).currency
    for row in billing.all_budgets(tx):
        project_id, budget = ProjectId(row.project_id), budget_of(row)
        period = tx.now.strftime("%Y-%m") if budget.period is Period.MONTH else "total"
        warned = list(row.warned) if row.warned_in == period else []
        for act in watch(budget, spending_of(tx, project_id, budget.period, stops), warned, currency):
            match act:
                case Warn(share, spent):
                    warned.append(share)
                    body = {"share": share, "spent_micros": spent, "limit_micros": budget.limit_micros}
                    tx.emit("budget.warned", project_id, project_id=project_id, body=body)
                    acts += 1
                case Stop(stopped, why):
                    # jobs are stopped before the limit, which may be before any share is passed
                    if not warned:
                        warned.append(1.0)
                        body = {"share": 1.0, "limit_micros": budget.limit_micros}
                        tx.emit("budget.warned", project_id, project_id=project_id, body=body)
                    acts += _stop(tx, project_id, stopped, why)
        if warned and (row.warned_in, list(row.warned)) != (period, warned):
            billing.remember_warned(tx, project_id, period, warned)
    return acts


def _stop(tx: Tx, project_id: ProjectId, stopped: tuple[str, ...], why: str) -> int:
    """Asks these jobs to end, in nobody's name; returns how many of them were not over."""
    acts = 0
    for row in jobs.rows(tx, stopped).values():
        before, what = life_of(row), KillRequested(why, EndReason.BY_BUDGET)
        life = step(before, what).life
        if life != before:
            jobs.change(tx, [(row, columns_of(life, row, tx.now))])
            kind = "job.killed" if life.over else "job.kill_requested"
            tx.emit(kind, row.id, project_id=project_id, body=to_json(what))
            acts += 1
    return acts

"""Whose jobs cannot start now, whatever room the pool has: paused queues, spent budgets, lost rights, full quotas."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from easel.flow.budgets import find_budget, spending_of, spent_projects
from easel.records.queue import Owner
from easel.records.standing import Obstacle, Standing
from easel.store import identity, job_queues
from easel.store.engine import Tx
from easel.store.events import newest


@dataclass(frozen=True)
class QueueAdmission:
    """`max_active` is a user's limit where no admin set another."""

    max_active: int = 8

    def obstacles(self, tx: Tx, owners: Collection[Owner]) -> dict[Owner, Obstacle]:
        """Returns the obstacle of each of these owners that has one."""
        found: dict[Owner, Obstacle] = {}
        strangers = identity.without_rights(tx, owners)
        queues = job_queues.blocked(tx, owners, self.max_active)
        spent = spent_projects(tx)
        for owner in owners:
            queue = queues.get(owner)
            if owner in strangers:
                found[owner] = Obstacle(Standing.NO_RIGHTS)
            elif queue is not None and queue.paused:
                found[owner] = _paused(tx, owner)
            elif owner[0] in spent:
                found[owner] = _spent(tx, owner)
            elif queue is not None:
                found[owner] = Obstacle(Standing.QUEUE_FULL, facts={"limit": float(queue.limit)})
        return found


def _paused(tx: Tx, owner: Owner) -> Obstacle:
    """Returns the obstacle of a paused queue, with who paused it from the history."""
    last = newest(tx, owner[0], "queue.changed", [owner[1], "project"])
    by = None if last is None or last.actor is None else identity.names_of(tx, [last.actor]).get(last.actor)
    return Obstacle(Standing.QUEUE_PAUSED, None if last is None else last.at, by)


def _spent(tx: Tx, owner: Owner) -> Obstacle:
    budget = find_budget(tx, owner[0])
    project = identity.find_project(tx, owner[0])
    facts: dict[str, float | str] = {"project": project.name if project is not None else ""}
    if budget is not None:
        facts["limit"] = budget.limit_micros / 1e6
        facts["spent"] = spending_of(tx, owner[0], budget.period).billed_micros / 1e6
    return Obstacle(Standing.PROJECT_BUDGET_SPENT, facts=facts)

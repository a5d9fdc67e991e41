"""The scheduling step: who leaves the queue, and what executors are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from easel.errors import EaselError
from easel.flow.jobs.advance import columns_of, life_of
from easel.flow.jobs.orders import OrderLimits, order_of
from easel.flow.jobs.people import Owners
from easel.flow.price.budgets import spent_projects
from easel.ids import ProjectId, UserId
from easel.records.queue import Line
from easel.run.lifecycle import Chosen, Ended, step, to_json
from easel.run.order import Order
from easel.run.queue import choose
from easel.run.vault import Vault
from easel.store import job_queues, jobs
from easel.store.engine import AnyRow, NewEvent, Store, Tx

Guard = Callable[[Tx], None]


@dataclass(frozen=True, slots=True)
class Launcher:
    """`max_active` is a user's limit where no admin set another.

    `buffer` is how many jobs executors hold that no device has begun; a pool may run any number beside them.
    """

    store: Store
    vault: Vault
    limits: OrderLimits
    max_active: int
    buffer: int

    def launch(self, device: str, guard: Guard) -> list[Order]:
        """Let through whom the queue chooses; returns the orders to give to `device` after the commit."""
        with self.store.read() as tx:
            room = self.buffer - job_queues.launching_count(tx)
            if room <= 0 or not any(line.waiting for line in self._lines(tx, 1)):
                return []
        with self.store.write() as tx:
            guard(tx)
            room = self.buffer - job_queues.launching_count(tx)
            turn = job_queues.last_turn(tx)
            choice = choose(self._lines(tx, room), room, turn)
            rows = jobs.rows(tx, choice.jobs)
            launched = [_launch(tx, rows[job], device) for job in choice.jobs]
            jobs.change(tx, [(row, values) for row, values, _ in launched])
            tx.emit_all([event for _, _, event in launched])
            job_queues.remember_served(tx, choice.served)
        return self.orders(choice.jobs, guard)

    def _lines(self, tx: Tx, at_most: int) -> list[Line]:
        """The queues that may launch: those of projects whose budget is spent wait."""
        spent = spent_projects(tx)
        return [line for line in job_queues.lines(tx, self.max_active, at_most) if line.owner[0] not in spent]

    def orders(self, ids: Sequence[str], guard: Guard) -> list[Order]:
        """The orders of launching jobs. One that cannot be made ends its job with the reason."""
        orders: list[Order] = []
        broken: list[tuple[str, str]] = []
        with self.store.read() as tx:
            owners, rows = Owners(tx), jobs.rows(tx, ids)
            for job in ids:
                try:
                    orders.append(order_of(tx, owners, rows[job], self.vault, self.limits))
                except (EaselError, OSError, ValueError) as error:
                    broken.append((job, str(error)))
        if broken:
            with self.store.write() as tx:
                guard(tx)
                rows = jobs.rows(tx, [job for job, _ in broken])
                ended = [_give_up(tx, rows[job], reason) for job, reason in broken]
                jobs.change(tx, [(row, values) for row, values, _ in ended])
                tx.emit_all([event for _, _, event in ended])
        return orders


def _launch(tx: Tx, row: AnyRow, device: str) -> tuple[AnyRow, dict[str, object], NewEvent]:
    what = Chosen()
    life = step(life_of(row), what).life
    values = {**columns_of(life, row, tx.now), "device": device, "launched_at": tx.now, "applied": 0}
    return row, values, _event(row, "job.launching", to_json(what))


def _give_up(tx: Tx, row: AnyRow, reason: str) -> tuple[AnyRow, dict[str, object], NewEvent]:
    what = Ended(row.attempt, reason, final=True)
    life = step(life_of(row), what).life
    return row, columns_of(life, row, tx.now), _event(row, f"job.{life.state.value}", to_json(what))


def _event(row: AnyRow, kind: str, body: dict[str, object]) -> NewEvent:
    return NewEvent(kind, row.id, ProjectId(row.project_id), UserId(row.user_id), body)

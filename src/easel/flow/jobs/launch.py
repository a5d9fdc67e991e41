"""The scheduling step: who leaves the queue, and what executors are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from easel import traces
from easel.declare.resources import Resources
from easel.errors import EaselError
from easel.flow.budgets import headroom, micros_to_stop, spent_projects, stops_in
from easel.flow.jobs.advance import columns_of, life_of
from easel.flow.jobs.orders import OrderLimits, order_of
from easel.flow.jobs.people import Owners
from easel.flow.jobs.shares import usage_now, with_shares
from easel.flow.prices import price_history
from easel.ids import JobId, ProjectId, UserId
from easel.records.attempt import EndReason
from easel.records.device import Device
from easel.records.queue import Line, Owner
from easel.run.lifecycle import Dequeued, Ended, step, to_json
from easel.run.order import Order
from easel.run.placement import could_hold
from easel.run.queue import choose, kept_room, launch_room, may_begin, newcomer_room, without
from easel.run.secret_store import SecretStore
from easel.run.share import HALF_LIFE_S
from easel.store import devices, job_attempts, job_queues, jobs, pool_shares, reservations, shares
from easel.store.devices import ENGINES
from easel.store.engine import NewEvent, Store, Tx
from easel.store.shares import HeldNow
from easel.store.stored_job import StoredJob

UNKNOWN_JOB_S = 60.0
"""How long a job is thought to take of which nothing is known."""
Guard = Callable[[Tx], None]


@dataclass(frozen=True, slots=True)
class Launcher:
    """`max_active` is a user's limit where no admin set another.

    `buffer` is how many jobs executors hold that no device has begun; a pool may run any number beside them.
    """

    store: Store
    secret_store: SecretStore
    limits: OrderLimits
    max_active: int
    buffer: int
    half_life_s: float = HALF_LIFE_S

    def launch(self, device: str, guard: Guard) -> list[Order]:
        """Let through whom the queue chooses; returns the orders to give to `device` after the commit."""
        with self.store.read() as tx:
            pool, connected = _pool(tx)
            if connected and not pool:  # all of it is being emptied
                return []
            if sum(self._room(tx, pool)) <= 0:
                return []
            if not any(line.waiting for line in self._lines(tx, 1, pool, self._headroom(tx))):
                return []
        with self.store.write() as tx:
            guard(tx)
            held = shares.held_now(tx)
            room, beyond = self._room(tx, pool, held)
            turn = job_queues.last_turn(tx)
            typical = job_attempts.typical_seconds(tx) or UNKNOWN_JOB_S
            usage, known = usage_now(tx, held, typical, self.half_life_s)
            left = self._headroom(tx)
            lines = with_shares(self._lines(tx, room + beyond, pool, left), usage, known, typical)
            kept = min(_kept_for_apps(tx, pool, held), room)
            of_apps = self._lines(tx, kept, pool, left, "trial") if kept else []
            own = choose(with_shares(of_apps, usage, known, typical), kept, turn, usage)
            rest = choose(
                without(lines, own), room - len(own.jobs), turn + len(own.jobs), usage, beyond=beyond
            )
            chosen = self._affordable(tx, (*own.jobs, *rest.jobs), left)
            rows = jobs.rows(tx, chosen)
            launched = [_launch(tx, rows[job], device) for job in chosen]
            jobs.change(tx, [(row, values) for row, values, _ in launched])
            tx.emit_all([event for _, _, event in launched])
            job_queues.remember_served(tx, {**own.served, **rest.served})
        first = own.first | rest.first
        orders = [replace(order, first=order.job_id in first) for order in self.orders(chosen, guard)]
        if traces.is_on():
            for order in orders:
                self._trace(order, rows[order.job_id], device)
        return orders

    def _trace(self, order: Order, row: StoredJob, device: str) -> None:
        """Notes how long the job waited in its queue; of a later attempt, only that it was launched."""
        now = self.store.clock.now()
        began = row.submitted_at if order.attempt == 1 else now
        told = {"easel.device": device}
        name = traces.LAUNCH
        traces.record(
            name, "easel-controller", order.job_id, began, now, attempt=order.attempt, attributes=told
        )

    def _room(self, tx: Tx, pool: Sequence[Device], held: Sequence[HeldNow] | None = None) -> tuple[int, int]:
        """How many more may leave the queues, and how many beside of people of whom nothing is active.

        Machines of Ray and Slurm come as they are needed.
        """
        launching = job_queues.launching_count(tx)
        if self.buffer <= launching or any(device.executor in ENGINES for device in pool):
            return max(self.buffer - launching, 0), 0
        cores = sum(device.capacity.vcpu for device in pool)
        running = shares.held_now(tx) if held is None else held
        if len(pool) == 1:
            sessions = sum(job.vcpu for job in running if job.session and job.started_at is not None)
            launching = may_begin([job.vcpu for job in running if job.started_at is None], cores, sessions)
        busy = sum(job.vcpu * job.workers for job in running if job.started_at is not None)
        now = (self.buffer, launching, cores, busy, job_attempts.typical_seconds(tx) or 0.0)
        return launch_room(*now), newcomer_room(*now)

    def _lines(
        self,
        tx: Tx,
        at_most: int,
        pool: Sequence[Device],
        left: Mapping[ProjectId, int],
        kind: str | None = None,
    ) -> list[Line]:
        """The queues that may launch, with the jobs that may begin: those wait for which a hard budget has no room, and
        those that no devices that are connected could hold together."""
        spent = spent_projects(tx, left)
        able = placeable(pool, reservations.kept_now(tx))
        found = job_queues.lines(tx, self.max_active, at_most, able, kind)
        found = [line for line in found if line.owner[0] not in spent]
        if not any(line.owner[0] in left for line in found):
            return found
        return [replace(line, waiting=self._affordable(tx, line.waiting, left)) for line in found]

    def _headroom(self, tx: Tx) -> dict[ProjectId, int]:
        return headroom(tx, stops_in(self.limits.grace_s))

    def _affordable(self, tx: Tx, ids: Sequence[JobId], left: Mapping[ProjectId, int]) -> tuple[JobId, ...]:
        """Returns the jobs for which hard budgets have room, were all of them to begin now.

        A project's first that has none ends its turn: what comes behind does not go before it.
        """
        if not left:
            return tuple(ids)
        rows, prices = jobs.rows(tx, ids, lock=False), price_history(tx)
        room = dict(left)
        found = []
        for job in ids:
            project = ProjectId(rows[job].project_id)
            if project in room:
                needs = micros_to_stop(rows[job].spec, tx.now, stops_in(self.limits.grace_s), prices)
                room[project] = room[project] - needs if needs <= room[project] else -1
                if room[project] < 0:
                    continue
            found.append(job)
        return tuple(found)

    def orders(self, ids: Sequence[str], guard: Guard) -> list[Order]:
        """The orders of launching jobs. One that cannot be made ends its job with the reason."""
        orders: list[Order] = []
        broken: list[tuple[str, str]] = []
        with self.store.read() as tx:
            owners, rows = Owners(tx), jobs.rows(tx, ids)
            for job in ids:
                try:
                    orders.append(order_of(tx, owners, rows[job], self.secret_store, self.limits))
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


def _pool(tx: Tx) -> tuple[list[Device], list[Device]]:
    """Returns the connected devices that may be given more work, and all that are connected."""
    known = [device for device in devices.machines(tx) if device.connected]
    return [device for device in known if device.open], known


def _kept_for_apps(tx: Tx, pool: Sequence[Device], held: Sequence[HeldNow]) -> int:
    """How many trials of apps go before everybody's jobs, so that apps have the share that is kept for them."""
    least = pool_shares.least(tx)
    if not least:
        return 0
    cores = sum(device.capacity.vcpu for device in pool)
    return kept_room(least, cores, sum(job.vcpu * job.workers for job in held if job.trial))


def placeable(pool: Sequence[Device], kept: Mapping[str, str]) -> job_queues.Placeable | None:
    """Returns what says whether devices could hold a job together, if they were empty; None where all may go there:
    machines of Ray and Slurm say nothing of labels, and of an unknown pool nothing is known.

    `kept` are reserved devices, each with the one project whose jobs may begin there.
    """
    if not pool or any(device.executor in ENGINES for device in pool):
        return None

    def able(owner: Owner, spec: Mapping[str, Any]) -> bool:
        mine = [device for device in pool if kept.get(device.name, owner[0]) == owner[0]]
        rooms = [(device.capacity, device.labels) for device in mine]
        asked = Resources(**spec["resources"])
        return could_hold(rooms, asked, spec.get("wants") or {}, int(spec.get("workers") or 1))

    return able


def _launch(tx: Tx, row: StoredJob, device: str) -> tuple[StoredJob, dict[str, object], NewEvent]:
    what = Dequeued()
    life = step(life_of(row), what).life
    launch = {"device": device, "launched_at": tx.now, "applied": 0, "not_before": None, "give_way": False}
    values = {**columns_of(life, row, tx.now), **launch}
    return row, values, _event(row, "job.launching", to_json(what))


def _give_up(tx: Tx, row: StoredJob, reason: str) -> tuple[StoredJob, dict[str, object], NewEvent]:
    what = Ended(row.attempt, reason, final=True, end=EndReason.CANNOT_START)
    life = step(life_of(row), what).life
    return row, columns_of(life, row, tx.now), _event(row, f"job.{life.state.value}", to_json(what))


def _event(row: StoredJob, kind: str, body: dict[str, object]) -> NewEvent:
    return NewEvent(kind, row.id, ProjectId(row.project_id), UserId(row.user_id), body)

"""The loop that keeps an engine's workers in step with what waits: Ray and Slurm alike.

Placements are written down before the engine is asked and removed when it no longer knows them, so whoever takes
over finds them by name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from easel.clock import Clock
from easel.declare.resources import Resources
from easel.errors import EaselError
from easel.records.worker import Placement
from easel.run.executors.engine import Engine, PlacementState, WorkerPlan
from easel.run.fleet import Ask, fleet_of, plan
from easel.store import devices, offers
from easel.store.engine import Store

log = logging.getLogger("easel.fleet")


@dataclass(frozen=True, slots=True)
class FleetPace:
    """`settle_s` is how long a fresh placement may be unknown to the engine before it counts as lost."""

    every_s: float = 0.5
    settle_s: float = 15.0
    most: int = 64
    time_s: float | None = None
    machines_s: float = 30.0


class FleetKeeper:
    """`leads` says whether this controller is the one that acts."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        worker: Callable[[], WorkerPlan],
        clock: Clock,
        leads: Callable[[], bool],
        pace: FleetPace = FleetPace(),  # noqa: B008 - frozen
    ) -> None:
        self._store, self._engine, self._worker, self._clock = store, engine, worker, clock
        self._leads, self._pace = leads, pace
        self._seen: dict[str, float] = {}
        self._machines_at = float("-inf")
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"fleet-{self._engine.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._leads():
                    self.turn()
            except EaselError as error:
                log.warning("%s: %s", self._engine.name, error)
                self._stopping.wait(2.0)
            except Exception:  # the loop is everybody's: it says what is wrong and goes on
                log.exception("the workers of %s could not be looked after", self._engine.name)
                self._stopping.wait(2.0)
            self._woken.wait(self._pace.every_s)
            self._woken.clear()

    def _note_machines(self) -> None:
        """Write down, now and then, what the cluster has: whoever submits is measured against it.

        One without any machine for jobs is about to get some (its head has just started): nobody is refused for that.
        """
        now = self._clock.monotonic()
        if now < self._machines_at:
            return
        self._machines_at = now + self._pace.machines_s
        rooms = [room for room in self._engine.capacity() if room.vcpu > 0]
        if not rooms:
            self._machines_at = now
            return
        with self._store.write() as tx:
            devices.machines_are(tx, self._engine.name, rooms)

    def turn(self) -> None:
        self._note_machines()
        name = self._engine.name
        with self._store.read() as tx:
            rows = offers.waiting_offers(tx, name)
            placements = offers.placements_of(tx, name)
            known = offers.workers_of(tx, name)
            present = {row.name for row in known if not row.left}
            left = {row.name for row in known if row.left}
            busy = {row.device for row in offers.held(tx, name) if row.device is not None and not row.over}
        if not rows and not placements:
            return
        standings = self._without_put_back(placements, self._engine.standings())
        placements = self._account(placements, standings, present)
        asks = [
            Ask(Resources(row.vcpu, row.memory_mb, row.gpus), row.size, row.time_limit_s)
            for row in rows
            if row.rank == 0
        ]
        machines = self._engine.capacity() if asks else ()
        fleet = fleet_of(placements, standings, present, left, busy)
        chosen = plan(asks, fleet, machines, self._pace.most)
        for gone in chosen.cancel:
            self._engine.cancel(next(each for each in placements if each.name == gone))
        for ask in chosen.place:
            self._place(ask)

    def _without_put_back(
        self, placements: list[Placement], standings: Mapping[str, PlacementState]
    ) -> Mapping[str, PlacementState]:
        """What the engine put back into its queue behind our back is taken out, and over: what its workers had is
        tried again by our own rule, on fresh ones.
        """
        for each in placements:
            if standings.get(each.name) is PlacementState.PUT_BACK:
                self._engine.cancel(each)
                self._seen[each.name] = float("-inf")
        return {
            name: standing for name, standing in standings.items() if standing is not PlacementState.PUT_BACK
        }

    def _account(
        self, placements: list[Placement], standings: Mapping[str, PlacementState], present: set[str]
    ) -> list[Placement]:
        """Drop those that the engine no longer knows; whatever their workers had is gone with them."""
        now = self._clock.monotonic()
        gone: list[Placement] = []
        for each in placements:
            first = self._seen.setdefault(each.name, now)
            if each.name in standings:
                self._seen[each.name] = float("-inf")  # known once: missing means ended
            elif now - first > self._pace.settle_s:
                gone.append(each)
        if gone:
            for each in gone:
                self._seen.pop(each.name, None)
                if not present.isdisjoint(each.members):
                    log.info("%s %s ended: %s", self._engine.name, each.name, self._engine.why(each))
            with self._store.write() as tx:
                offers.remove_placements(tx, [each.name for each in gone])
                offers.leave(tx, [name for each in gone for name in each.members])
        return [each for each in placements if each not in gone]

    def _place(self, ask: Ask) -> None:
        limit = ask.time_limit_s
        time_s = self._pace.time_s if limit is None else max(limit + 120.0, self._pace.time_s or 0.0)
        with self._store.write() as tx:
            name = f"{self._engine.name}-{tx.mint('w').partition('_')[2].lower()}"
            made = Placement(name, ask.resources, ask.workers, time_s)
            offers.add_placement(tx, self._engine.name, made)
        try:
            handle = self._engine.place(made, self._worker())
        except EaselError:
            with self._store.write() as tx:
                offers.remove_placements(tx, [made.name])
            raise
        with self._store.write() as tx:
            offers.set_handle(tx, made.name, handle)

    def close(self, *, stop: bool) -> None:
        """Closes; with `stop` also ends every placement."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(30)
        if stop:
            with self._store.read() as tx:
                placements = offers.placements_of(tx, self._engine.name)
            self._cancel_all(placements)
        self._engine.close()

    def _cancel_all(self, placements: list[Placement]) -> None:
        """An engine that is away keeps nobody from stopping: its workers end when they have been idle for a while."""
        try:
            for each in placements:
                self._engine.cancel(each)
        except EaselError as error:
            log.warning("the workers of %s are left to themselves: %s", self._engine.name, error)
            return
        with self._store.write() as tx:
            offers.remove_placements(tx, [each.name for each in placements])

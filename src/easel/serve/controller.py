"""The controller: the one loop that joins queue, executor and history. Any number may run; one acts at a time.

All that it knows is in the database or can be asked of the executor, so it may die at any moment. It acts only
under a lease, and every transaction checks the lease's fence, so one that was thought dead changes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from easel.clock import Clock
from easel.errors import Fenced, TryLater
from easel.flow.budgets import stops_in
from easel.flow.jobs.advance import Advance, Advancer
from easel.flow.jobs.launch import Launcher
from easel.flow.jobs.preempt import preempt, preempting
from easel.flow.jobs.reports import AttemptReport
from easel.flow.jobs.stranded import put_back, stranded, unaffordable
from easel.flow.operate.drain import emptying
from easel.flow.operate.reserve import strangers
from easel.records.attempt import AttemptKey, EndReason
from easel.run.executors.base import (
    AttemptGone,
    Away,
    Beat,
    Connected,
    Entries,
    Executor,
    MemberEnded,
    MemberSaid,
    Report,
)
from easel.store import devices, job_placements, jobs, leases
from easel.store.engine import Store, Tx
from easel.store.stored_job import StoredJob
from easel.tenancy.rules import Rules

log = logging.getLogger("easel.controller")
LEASE = "controller"
MAX_ASKED_AGAIN = 5
"""How often one and the same missing entry is asked for."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long, in seconds."""

    poll: float = 0.2
    lease: float = 6.0
    lost_after: float = 60.0
    reconnect: float = 0.5


class Controller:
    def __init__(
        self,
        store: Store,
        executor: Executor,
        advancer: Advancer,
        launcher: Launcher,
        holder: str,
        clock: Clock,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        rules: Rules = Rules(),  # noqa: B008 - frozen
    ) -> None:
        self.store, self.executor, self.advancer, self.launcher = store, executor, advancer, launcher
        self.holder, self.clock, self.pace, self.rules = holder, clock, pace, rules
        self.wake = threading.Event()
        self.fence: int | None = None
        self.led = False
        """Whether it was in charge when it stopped: the worker of one that stood by is somebody else's."""
        self.connected = False
        self._renew_at = self._connect_at = self._look_at = float("-inf")
        self._watched: tuple[tuple[str, int, datetime], float] | None = None
        self._reports: deque[Report] = deque()
        self._backlog: list[AttemptReport] = []
        self._heard: dict[str, float] = {}
        self._stopped: set[str] = set()
        self._asked_to_give_way: set[str] = set()
        self._asked_again: dict[str, tuple[int, int]] = {}
        self._away_since: float | None = None

    def run(self, stopping: threading.Event) -> None:
        """Runs until `stopping` is set. Trouble with the database is waited out."""
        stop_listening = self.store.listen(self.wake.set)
        try:
            while not stopping.is_set():
                try:
                    busy = self.turn()
                except TryLater as error:
                    log.warning("controller waits: %s", error)
                    busy = False
                    stopping.wait(1.0)
                except Exception:  # the loop is everybody's: it says what is wrong and goes on
                    log.exception("a turn of the controller failed")
                    busy = False
                    stopping.wait(1.0)
                if not busy:
                    self.wake.wait(self.pace.poll)
                self.wake.clear()
        finally:
            stop_listening()
            self.led = self.fence is not None
            self._resign()

    def turn(self) -> bool:
        """One round; True when there may be more to do at once."""
        now = self.clock.monotonic()
        if not self._lead(now):
            return False
        try:
            if not self.connected and now >= self._connect_at:
                self._connect(now)
            heard = self._read_reports(now)
            told = self._tell()
            self._stop_attempts()
            launched = self._launch() if self.connected else 0
            if now >= self._look_at:
                self._look_at = now + 1.0
                self._look_for_lost(now)
                self._empty_drained()
                self._preempt()
                self._put_back()
        except Fenced:
            log.warning("another controller has taken over; standing by")
            self._stand_by()
            return False
        return heard or told or launched > 0

    # The lease. -------------------------------------------------------------------------------------------

    def _lead(self, now: float) -> bool:
        if now < self._renew_at:  # whoever stands by is woken by every event, too
            return self.fence is not None
        with self.store.write() as tx:
            fence = leases.take(tx, LEASE, self.holder, self.pace.lease)
            if fence is None:
                fence = self._seize(tx, now)
        # Whoever stands by looks more often than it would renew: that is time in which nobody acts.
        self._renew_at = now + (self.pace.lease / 3 if fence is not None else self.pace.lease / 8)
        if fence != self.fence:
            self._stand_by()
            self.fence = fence
        return fence is not None

    def _seize(self, tx: Tx, now: float) -> int | None:
        """Take the lease of a holder that has not moved for long by our own clock, whatever the wall says."""
        seen = leases.stand(tx, LEASE)
        if seen is None:
            return None
        if self._watched is None or self._watched[0] != seen:
            self._watched = (seen, now)
            return None
        if now - self._watched[1] <= self.pace.lease:
            return None
        return leases.seize(tx, LEASE, self.holder, self.pace.lease, seen)

    def leads(self) -> bool:
        return self.fence is not None

    def guard(self, tx: Tx) -> None:
        if self.fence is None or not leases.holds(tx, LEASE, self.fence):
            raise Fenced("this controller's lease was taken over")

    def _stand_by(self) -> None:
        self.fence, self.connected = None, False
        self._reports.clear()
        self._backlog.clear()
        self._heard.clear()
        self._stopped.clear()
        self._asked_to_give_way.clear()
        self._asked_again.clear()
        self.executor.close(stop=False)

    def _resign(self) -> None:
        if self.fence is not None:
            try:
                with self.store.write() as tx:
                    leases.release(tx, LEASE, self.holder)
            except TryLater:
                log.warning("the lease could not be given back; it ends by itself")
        self._stand_by()

    # The executor. ----------------------------------------------------------------------------------------

    def _connect(self, now: float) -> None:
        assert self.fence is not None
        self._connect_at = now + self.pace.reconnect
        with self.store.read() as tx:
            seen = {_key(row): row.applied for row in jobs.active(tx)}
        self.advancer.connected()
        self.executor.connect(self.fence, seen)

    def _read_reports(self, now: float) -> bool:
        """A report is dropped when it was dealt with: the database may fail us in the middle of several."""
        self._reports.extend(self.executor.poll())
        heard = bool(self._reports)
        while self._reports:
            self._take(self._reports[0], now)
            self._reports.popleft()
        return heard

    def _take(self, report: Report, now: float) -> None:
        match report:
            case Connected():
                self._reconcile(report, now)
                self.connected, self._away_since = True, None
            case Away(reason):
                log.warning("executor %s is away: %s", self.executor.name, reason)
                self.connected = False
                self._away_since = now if self._away_since is None else self._away_since
                with self.store.write() as tx:
                    devices.away(tx, self.executor.name)
            case Entries(key, entries):
                self._heard[key] = now
                self._backlog.append(AttemptReport(AttemptKey.parse(key), entries))
            case MemberSaid():
                self._backlog.append(AttemptReport(AttemptKey.parse(report.key), member=report))
            case MemberEnded():
                self._backlog.append(AttemptReport(AttemptKey.parse(report.key), member_end=report))
            case AttemptGone(key, reason, end):
                self._lose(key, end, reason)
            case Beat(alive, notes):
                self._heard |= dict.fromkeys(alive & self._heard.keys(), now)
                if notes:
                    with self.store.write() as tx:
                        devices.note(tx, self.executor.name, notes)

    def _reconcile(self, found: Connected, now: float) -> None:
        """Compare what the executor has with what the database says it should have."""
        with self.store.write() as tx:
            self.guard(tx)
            if found.is_device:
                devices.seen(tx, self.executor.name, "local", found.capacity, found.notes)
            active = {_key(row): row for row in jobs.active(tx)}
        self._stopped.clear()
        self._asked_to_give_way.clear()
        for key in found.attempts - active.keys():
            self.executor.forget(key, over=False)  # it may be tried again, and look for its checkpoint
        waiting = [
            row.id for key, row in active.items() if key not in found.attempts and row.state == "launching"
        ]
        for order in self.launcher.orders(waiting, self.guard):
            self.executor.start(order)
        for key, row in active.items():
            self._heard[key] = now
            if key not in found.attempts and row.state != "launching":
                self._lose(key, EndReason.UNKNOWN_THERE, "its executor no longer knows it")

    def _lose(self, key: str, end: EndReason, reason: str) -> None:
        self._backlog.append(AttemptReport(AttemptKey.parse(key), gone=(end, reason)))

    def _tell(self) -> bool:
        """Make reports part of the database. They are dropped only after the commit."""
        if not self._backlog:
            return False
        told = self._backlog[:500]
        try:
            found = [self.advancer.advance(told, self.guard)]
        except (TryLater, Fenced):
            raise
        except Exception:  # one bad report must not stop everybody's
            log.exception("a batch of reports was refused; trying them one by one")
            found = self._one_by_one(told)
        del self._backlog[: len(told)]
        for each in found:
            self._ask_again(each)
            for key, ended in each.over.items():
                name = str(key)
                self._heard.pop(name, None)
                self._stopped.discard(name)
                self._asked_again.pop(name, None)
                self.executor.forget(name, over=ended)
        return True

    def _one_by_one(self, told: list[AttemptReport]) -> list[Advance]:
        found: list[Advance] = []
        for each in told:
            try:
                found.append(self.advancer.advance([each], self.guard))
            except (TryLater, Fenced):
                raise
            except Exception:
                log.exception("a report of %s was refused", each.key)
                why = (EndReason.NOT_UNDERSTOOD, "its report could not be understood")
                found.append(self.advancer.advance([AttemptReport(each.key, gone=why)], self.guard))
        return found

    def _ask_again(self, found: Advance) -> None:
        """Have journals said again in which an entry is missing; one that stays so cannot be read."""
        for key, known in found.gaps.items():
            name = str(key)
            before, times = self._asked_again.get(name, (known, 0))
            times = times + 1 if before == known else 1
            self._asked_again[name] = (known, times)
            if times > MAX_ASKED_AGAIN:
                self._lose(name, EndReason.NOT_UNDERSTOOD, f"entry {known} of its journal is missing")
            else:
                log.warning("entry %d of %s is missing: asking again", known, name)
                self.executor.resend(name, known)

    def _stop_attempts(self) -> None:
        if not self.connected:
            return
        with self.store.read() as tx:
            keys, asked = job_placements.to_kill(tx), job_placements.to_give_way(tx)
        giving = {key for key, by_itself in asked.items() if by_itself}
        keys += [key for key, by_itself in asked.items() if not by_itself]
        for key in keys:
            if key not in self._stopped:
                self._stopped.add(key)
                self.executor.kill(key)
        for key in giving - self._asked_to_give_way:
            self.executor.give_way(key)
        self._asked_to_give_way = giving

    def _empty_drained(self) -> None:
        """Begins nothing more on drained devices; stops what still runs there at the deadline."""
        if not self.connected:
            return
        found = emptying(self.store)
        self.executor.spare(found.devices)
        for key in found.stop - self._stopped:
            self._stopped.add(key)
            self.executor.kill(key)

    def _preempt(self) -> None:
        """Stops jobs that may be stopped: on devices that are kept for others, and where somebody with a better claim
        has waited for a while."""
        if not self.connected:
            return
        launcher = self.launcher
        kept, found = strangers(self.store)
        self.executor.reserve(kept)
        found += preempting(self.store, launcher.max_active, launcher.half_life_s, self._stopped)
        if not found:
            return
        with self.store.write() as tx:
            self.guard(tx)
            stop = preempt(tx, found)
        for key in stop - self._stopped:
            self._stopped.add(key)
            self.executor.kill(key)

    def _put_back(self) -> None:
        """What the devices that are left could not hold, or a budget cannot pay, goes back into its queue."""
        if not self.connected:
            return
        stops = stops_in(self.launcher.limits.grace_s)
        found = {*stranded(self.store, self._stopped), *unaffordable(self.store, stops, self._stopped)}
        if not found:
            return
        with self.store.write() as tx:
            self.guard(tx)
            stop = put_back(tx, found)
        for key in stop:
            self._stopped.add(key)
            self.executor.kill(key)

    def _launch(self) -> int:
        orders = self.launcher.launch(self.executor.name, self.guard)
        now = self.clock.monotonic()
        for order in orders:
            self._heard[order.key] = now
            self.executor.start(order)
        return len(orders)

    def _look_for_lost(self, now: float) -> None:
        """Ends and accounts for attempts that nobody has heard of for long."""
        silent = [key for key, heard in self._heard.items() if now - heard > self.pace.lost_after]
        for key in silent:
            self._heard.pop(key)
            if self.connected:
                self.executor.kill(key, force=True)
            self._lose(key, EndReason.DEVICE_LOST, f"nothing was heard of it for {self.pace.lost_after:g} s")


def _key(row: StoredJob) -> str:
    return str(AttemptKey(row.id, row.attempt))

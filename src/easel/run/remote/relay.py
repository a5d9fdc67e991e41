"""Between a worker on this machine and a server elsewhere: carries reports out and orders in, over HTTPS only.

Two threads talk to the server: one waits for orders, the other brings what is new as soon as there is something.
Each exchange says everything that the worker has, so one that is lost or repeated does no harm.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from easel.clock import Clock
from easel.declare.job import Trial
from easel.declare.resources import Room
from easel.errors import Conflict, Denied, EaselError, Unauthenticated
from easel.run.entries import AttemptDone, JournalEntry, encode_entry, wire_size
from easel.run.executors.base import AttemptGone, Away, Beat, Connected, Entries, Executor
from easel.run.order import ORDER
from easel.run.remote.depot import ROOT, Link
from easel.run.remote.visits import VisitCarrier
from easel.sdk.connection import Connection
from easel.wire import worker as wire

log = logging.getLogger("easel.worker")
WAIT_S = 20.0
TICK_S = 0.1
AWAY_S = 0.2
AT_ONCE_BYTES = 4 * 2**20
AHEAD_S = 0.2
"""So much short work is taken ahead: what is done before the next exchange could bring more."""
MAX_AHEAD = 32


@dataclass(frozen=True, slots=True)
class About:
    """What a worker says of itself. `lasts_s` is how long it has, where somebody set an end."""

    name: str
    executor: str = "remote"
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    lasts_s: float | None = None
    idle_exit_s: float | None = None


class ServerRefused(EaselError):
    """The server does not want this worker: end."""

    kind = "refused"


class Relay:
    """`executor` is the worker of this machine; `woken` is set by it when there is news.

    `fence` is larger than that of any relay before on this machine.
    """

    def __init__(
        self,
        executor: Executor,
        link: Link,
        about: About,
        clock: Clock,
        woken: threading.Event,
        fence: int = 1,
        visits: VisitCarrier | None = None,
    ) -> None:
        self._executor, self._link, self._about, self._clock = executor, link, about, clock
        self._fence, self._visits = fence, visits
        self._woken = woken
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._refused: EaselError | None = None
        self._session = 0
        self._number = 0
        self._capacity = Room(0.0, 0)
        self._notes: Mapping[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._trials: set[str] = set()
        self._gave_way: set[str] = set()
        self._walls: deque[float] = deque(maxlen=16)
        self._news: deque[wire.AttemptNews] = deque()
        self._offers: deque[tuple[str, str]] = deque(maxlen=1_000)
        """The last ones that were taken, each with its attempt."""
        self._connected = False
        self._away = False
        self._started = clock.monotonic()
        self._busy_at = clock.monotonic()

    # The two threads. ---------------------------------------------------------------------------------------------

    def run(self, stopping: threading.Event) -> None:
        """Exchanges until `stopping` is set, the server refuses us, or there was nothing to do for `idle_exit_s`.

        From the moment at which `stopping` is set no order is taken: the server gives it to another worker.
        """
        self._stopping = stopping
        self._connect(stopping)
        receiver = threading.Thread(target=self._listen, name="orders", daemon=True)
        sender = self._link.connect(attempts=1)
        failures = 0
        try:
            while not stopping.is_set() and self._refused is None and not self._idle():
                self._poll_executor()
                if not self._connected:
                    self._connect(stopping)
                elif self._news or self._session == 0:
                    failures = 0 if self._talk(sender, 0.0) else failures + 1
                    if failures:
                        stopping.wait(min(10.0, 0.2 * 2**failures))
                    elif self._session and not receiver.is_alive():
                        receiver.start()
                    continue
                self._woken.wait(TICK_S if self._attempts else 1.0)
                self._woken.clear()
        finally:
            stopping.set()
            self._leave(sender)
            sender.close()
        if self._refused is not None:
            raise ServerRefused(str(self._refused))

    def _listen(self) -> None:
        connection = self._link.connect(attempts=1)
        failures = 0
        while not self._stopping.is_set() and self._refused is None:
            if not self._connected:
                self._stopping.wait(0.2)
                continue
            failures = 0 if self._talk(connection, WAIT_S, news=False) else failures + 1
            if failures:
                self._stopping.wait(min(10.0, 0.2 * 2**failures))
        connection.close()

    def _idle(self) -> bool:
        now = self._clock.monotonic()
        with self._lock:
            if self._attempts or self._news or self._session == 0:
                self._busy_at = now
        limit = self._about.idle_exit_s
        return limit is not None and now - self._busy_at > limit

    # The worker. ----------------------------------------------------------------------------------------------

    def _connect(self, stopping: threading.Event) -> None:
        """Connects until the worker answers. One that goes away before it does is started again."""
        while not self._connected and self._refused is None and not stopping.is_set():
            self._away = False
            self._executor.connect(self._fence, {})
            while not self._answered() and not stopping.is_set():
                if not self._poll_executor():
                    self._woken.wait(TICK_S)
                    self._woken.clear()
            if self._away:
                stopping.wait(AWAY_S)

    def _answered(self) -> bool:
        return self._connected or self._away

    def _poll_executor(self) -> bool:
        reports = self._executor.poll()
        for report in reports:
            match report:
                case Connected(capacity, attempts, notes):
                    with self._lock:
                        self._capacity, self._notes, self._connected = capacity, notes, True
                        # What it never got, or lost before it began, will be offered as before, and must be taken;
                        # and whether it was told to end or to give way before it went nobody knows: it is told again.
                        lost = self._attempts.keys() - attempts
                        kept = [offer for offer in self._offers if offer[1] not in lost]
                        self._offers = deque(kept, self._offers.maxlen)
                        self._attempts = dict.fromkeys(attempts, 0)
                        self._gave_way.clear()
                case Beat(_, notes) if notes:
                    self._notes = {**self._notes, **notes}
                case Away(reason, superseded):
                    log.warning("the worker is away: %s", reason)
                    self._connected, self._away = False, True
                    if superseded:
                        self._refused = Conflict(
                            "another `easel worker` has taken over this machine's worker"
                        )
                case Entries(key, entries):
                    self._note_walls(key, entries)
                    told = [encode_entry(entry) for entry in entries]
                    self._news.append(wire.AttemptNews(key=key, entries=told))
                case AttemptGone(key, reason, end):
                    self._news.append(wire.AttemptNews(key=key, gone=reason, end=end.value))
        return bool(reports)

    def _note_walls(self, key: str, entries: list[JournalEntry]) -> None:
        if key in self._trials:
            done = (entry.body for entry in entries if isinstance(entry.body, AttemptDone))
            self._walls.extend(body.usage.wall_seconds for body in done)

    def _ahead(self) -> int:
        """How many short trials to take beyond our room: as many as a moment holds."""
        if not self._walls:
            return 0
        mean = sum(self._walls) / len(self._walls)
        cores = max(1.0, self._capacity.vcpu)
        return min(MAX_AHEAD, math.floor(cores * AHEAD_S / max(mean, 1e-3)))

    # The server. --------------------------------------------------------------------------------------------------

    def _talk(self, connection: Connection, wait_s: float, news: bool = True, leaving: bool = False) -> bool:
        """One exchange; False when it failed and must be tried again. News stay until the server has them."""
        with self._lock:
            carried = self._some_news() if news else []
            self._number += 1
            body = self._say(carried, wait_s, leaving)
        try:
            timeout = httpx.Timeout(wait_s + 10.0, connect=5.0)  # a dead connection is given up soon
            response = connection.request(
                "POST",
                f"{ROOT}/exchange",
                content=body.model_dump_json(),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            )
            orders = wire.Orders.model_validate_json(response.content)
        except (Unauthenticated, Denied, Conflict) as error:
            self._refused = error
            self._woken.set()
            return False
        except (EaselError, ValueError) as error:
            log.warning("no exchange with the server: %s", error)
            return False
        with self._lock:
            for _ in carried:
                self._news.popleft()
            self._apply_orders(orders)
        return True

    def _some_news(self) -> list[wire.AttemptNews]:
        carried: list[wire.AttemptNews] = []
        size = 0
        for each in self._news:
            size += sum(wire_size(entry) for entry in each.entries)
            if carried and (size > AT_ONCE_BYTES or len(carried) >= 5000):
                break
            carried.append(each)
        return carried

    def _say(self, news: list[wire.AttemptNews], wait_s: float, leaving: bool) -> wire.Exchange:
        about, room = self._about, self._capacity
        lasts = about.lasts_s
        remaining = None if lasts is None else max(0.0, lasts - (self._clock.monotonic() - self._started))
        return wire.Exchange(
            device=about.name,
            executor=about.executor,
            session=self._session,
            number=self._number,
            clock=self._clock.now().timestamp(),
            monotonic=self._clock.monotonic(),
            capacity=wire.Capacity(vcpu=room.vcpu, memory_mb=room.memory_mb, gpus=len(room.gpus)),
            labels=dict(about.labels),
            notes=dict(self._notes),
            address=about.address,
            attempts=dict(self._attempts),
            news=news,
            ahead=self._ahead(),
            remaining_s=remaining,
            wait_s=wait_s,
            leaving=leaving,
            gave_way=sorted(self._gave_way),
        )

    def _apply_orders(self, orders: wire.Orders) -> None:
        self._session = orders.session
        for each in orders.start if not self._stopping.is_set() else ():
            order = ORDER.validate_python(each.order)
            # A late answer may repeat an offer that another one brought, and that is over by now.
            offer = (each.offer, order.key)
            if order.key not in self._attempts and offer not in self._offers:
                self._attempts[order.key] = 0
                self._offers.append(offer)
                if isinstance(order.run, Trial):
                    self._trials.add(order.key)
                self._executor.start(order)
        for key, force in orders.kill.items():
            level = 2 if force else 1
            if self._attempts.get(key, level) < level:
                self._attempts[key] = level
                self._executor.kill(key, force=force)
        for key in orders.give_way:
            if key in self._attempts and key not in self._gave_way:
                self._gave_way.add(key)
                self._executor.give_way(key)
        for key, seen in orders.resend.items():
            # What was to follow would only be refused too; all of it comes again.
            self._news = deque(each for each in self._news if each.key != key or each.gone is not None)
            self._executor.resend(key, seen)
        for key, over in orders.forget.items():
            self._executor.forget(key, over=over)
            self._attempts.pop(key, None)
            self._trials.discard(key)
            self._gave_way.discard(key)
        if self._visits is not None:
            for asked in orders.visits:
                self._visits.begin(asked.visit, asked.key)
        self._woken.set()

    def _leave(self, connection: Connection) -> None:
        """End what runs, then say so: others need not wait until they notice.

        Attempts are what we had, and have ended; orders that were still under way are given to others. Where nothing
        runs it is said at once, so that none comes while the worker ends.
        """
        with self._lock:
            idle = not self._attempts
        said = idle and self._say_goodbye(connection)
        self._executor.close(stop=True)
        if not said:
            self._say_goodbye(connection)

    def _say_goodbye(self, connection: Connection) -> bool:
        if not self._session or self._refused is not None:
            return False
        return self._talk(connection, 0.0, leaving=True)

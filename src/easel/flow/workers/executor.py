"""Devices that pull their work, as an executor: orders become rows that workers lease, reports come as rows.

Everything is in the database, so any server may talk to any worker, and a controller that takes over finds all of
it. Commands are gathered and written in one transaction at the next `poll`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from easel.clock import Clock
from easel.declare.job import Trial
from easel.declare.resources import Room
from easel.flow.workers.seal import Seal
from easel.records.attempt import AttemptKey, EndReason
from easel.records.worker import AttemptOffer
from easel.run.entries import AttemptEnded, AttemptLost, JournalEntry, LoggedLines, decode_entry
from easel.run.executors.base import (
    AttemptGone,
    Away,
    Beat,
    Connected,
    Entries,
    MemberEnded,
    MemberSaid,
    Report,
)
from easel.run.order import Order
from easel.store import devices, offers
from easel.store.engine import Store, Tx
from easel.store.offered import HeldWork, WorkReport

WATCH_S = 1.0


@dataclass(slots=True)
class _Heard:
    """A worker's heartbeats as we saw them, by our own clock: nobody's wall clock matters."""

    beats: int
    at: float


class RemoteExecutor:
    """`lost_after` is how long a worker may be silent before its attempts count as gone.

    Workers that come and go (`passing`, those that an engine places) are not remembered when they have left.
    """

    def __init__(
        self,
        store: Store,
        seal: Seal,
        clock: Clock,
        name: str = "remote",
        lost_after: float = 120.0,
        passing: bool = False,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self.name, self.lost_after = store, name, lost_after
        self._seal, self._clock, self._passing, self._on_stop = seal, clock, passing, on_stop
        self._fence: int | None = None
        self._seen: Mapping[str, int] = {}
        self._cursor = 0
        self._starts: dict[str, Order] = {}
        self._kills: dict[str, int] = {}
        self._yields: set[str] = set()
        self._forgets: dict[str, bool] = {}
        self._reports: list[Report] = []
        self._workers: dict[str, _Heard] = {}
        self._rooms: list[tuple[str, Room, Mapping[str, str]]] = []
        self._kept: Mapping[str, str] = {}
        self._watch_at = 0.0

    def connect(self, fence: int, seen: Mapping[str, int]) -> None:
        if self._fence is not None:
            self._flush()
        self._drop()
        with self.store.write() as tx:
            if not offers.raise_fence(tx, self.name, fence):
                self._reports.append(Away("a newer controller is in charge", superseded=True))
                return
            attempts = offers.attempts(tx, self.name)
            self._rooms = _rooms(tx, self.name)
        self._fence, self._seen, self._cursor = fence, dict(seen), 0
        self._reports.append(Connected(_sum(self.rooms()), attempts, {"pull": "yes"}, is_device=False))

    @property
    def driving(self) -> bool:
        """Whether this is the executor of the controller that acts."""
        return self._fence is not None

    def _drop(self) -> None:
        self._fence = None
        self._starts.clear()
        self._kills.clear()
        self._yields.clear()
        self._forgets.clear()
        self._reports.clear()
        self._workers.clear()

    def rooms(self, project_id: str = "") -> Sequence[tuple[Room, Mapping[str, str]]]:
        """What each of its devices has, and its labels; of those that a project may use, where one is named."""
        return [
            (room, labels)
            for name, room, labels in self._rooms
            if not project_id or self._kept.get(name, project_id) == project_id
        ]

    def reserve(self, kept: Mapping[str, str]) -> None:
        """Counts reserved workers only for their projects; the database sees to it what they are given."""
        self._kept = dict(kept)

    def spare(self, names: frozenset[str]) -> None:
        """Counts its workers for nothing here; the database sees to it that they are given nothing."""

    def start(self, order: Order) -> None:
        self._starts[order.gang] = order

    def kill(self, key: str, *, force: bool = False) -> None:
        self._kills[key] = max(self._kills.get(key, 0), offers.KILL_NOW if force else offers.KILL)

    def give_way(self, key: str) -> None:
        self._yields.add(key)

    def forget(self, key: str, *, over: bool = True) -> None:
        self._forgets[key] = over

    def poll(self) -> list[Report]:
        if self._fence is not None:
            self._flush()
        if self._fence is not None:
            now = self._clock.monotonic()
            if now >= self._watch_at:
                self._watch_at = now + WATCH_S
                self._watch(now)
            self._read_reports()
        reports, self._reports = self._reports, []
        return reports

    def close(self, *, stop: bool) -> None:
        if self._fence is not None:
            self._flush()
        self._drop()
        if stop:
            self._on_stop()

    # Commands. ------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        if not (self._starts or self._kills or self._yields or self._forgets):
            return
        with self.store.write() as tx:
            if offers.fence(tx, self.name) != self._fence:
                self._drop()
                self._reports.append(Away("a newer controller is in charge", superseded=True))
                return
            offers.lock_work(tx)
            # A key that a device has yet to remove is offered when it has.
            leaving = offers.leaving(tx, list(self._starts))
            held = {gang: order for gang, order in self._starts.items() if gang in leaving}
            offered = [
                new for gang, order in self._starts.items() if gang not in held for new in self._offers(order)
            ]
            offers.offer(tx, self.name, offered)
            fresh, strangers = offers.ask_kill(tx, self._kills)
            stopped = [
                offers.NewReport(
                    self.name,
                    gang,
                    gone="stopped before it began",
                    gone_end=EndReason.STOPPED.value,
                    over=True,
                )
                for gang in fresh
            ]
            offers.add_reports(tx, stopped)
            offers.ask_to_give_way(tx, self._yields)
            offers.forget(tx, self._forgets)
            tx.wake()
        self._reports += [
            AttemptGone(key, "nothing of it was left here", EndReason.UNKNOWN_THERE) for key in strangers
        ]
        self._starts = held
        self._kills.clear()
        self._yields.clear()
        self._forgets.clear()

    def _offers(self, order: Order) -> list[offers.NewWork]:
        members = [replace(order, rank=rank) for rank in range(max(1, order.workers))]
        return [offers.NewWork(_offer(member), self._seal.close(member)) for member in members]

    # News. ----------------------------------------------------------------------------------------------------

    def _read_reports(self) -> None:
        with self.store.read() as tx:
            rows = offers.reports_after(tx, self.name, self._cursor)
        for row in rows:
            self._cursor = row.seq
            key = AttemptKey.parse(row.key)
            gang = str(key.gang)
            if key.rank:
                self._hear_peer(gang, key.rank, row)
            elif row.gone is not None:
                self._reports.append(AttemptGone(gang, row.gone, _end(row)))
            else:
                self._hear(gang, row, self._seen.get(gang, 0))

    def _hear(self, gang: str, row: WorkReport, known: int) -> None:
        entries = [entry for entry in _entries(row) if entry.number >= known]
        if entries:
            self._reports.append(Entries(gang, entries))

    def resend(self, key: str, seen: int) -> None:
        with self.store.read() as tx:
            rows = offers.reports_of(tx, key)
        for row in rows:
            if row.gone is None and row.seq <= self._cursor:  # later ones are yet to be read
                self._hear(key, row, seen)

    def _hear_peer(self, gang: str, rank: int, row: WorkReport) -> None:
        """Takes the log of another member of a distributed job, and a bad end: it ends all of them."""
        if row.gone is not None:
            self._reports.append(AttemptGone(gang, f"worker {rank}: {row.gone}", _end(row)))
            self.kill(gang)
            return
        entries = _entries(row)
        logged = [entry for entry in entries if isinstance(entry.body, LoggedLines)]
        if logged:
            self._reports.append(MemberSaid(gang, rank, row.seq, logged))
        for last in entries:
            if isinstance(last.body, AttemptEnded | AttemptLost):
                self._reports.append(MemberEnded(gang, rank, last))
                self.kill(gang)

    def _watch(self, now: float) -> None:
        """Declares lost what a silent or departed worker had; everything else waits or runs."""
        with self.store.read() as tx:
            rows = offers.held(tx, self.name)
            self._rooms = _rooms(tx, self.name)
            workers = {row.name: row for row in offers.workers_of(tx, self.name)}
        lost: dict[str, str] = {}
        for name, worker in workers.items():
            heard = self._workers.get(name)
            if heard is None or heard.beats != worker.beats:
                self._workers[name] = _Heard(worker.beats, now)
            if worker.left:
                lost[name] = f"device {name} has left"
            elif now - self._workers[name].at > self.lost_after:
                lost[name] = f"device {name} was not heard of for {self.lost_after:g} s"
        for row in rows:
            if row.device is not None and row.device not in workers:
                lost[row.device] = f"device {row.device} is not there any more"
        gone = [row for row in rows if not row.over and not row.forgotten and row.device in lost]
        holding = {row.device for row in rows}
        new = {name: why for name, why in lost.items() if name in holding or not workers[name].left}
        if new:
            self._lose(new, gone)
        self._workers = {name: heard for name, heard in self._workers.items() if name in workers}
        over = {row.gang for row in rows if row.over or row.forgotten} | {row.gang for row in gone}
        self._reports.append(Beat(frozenset(row.gang for row in rows) - over))

    def _lose(self, lost: Mapping[str, str], gone: Sequence[HeldWork]) -> None:
        with self.store.write() as tx:
            if offers.fence(tx, self.name) != self._fence:
                return
            offers.lock_work(tx)
            connected = {device.name for device in devices.list_devices(tx) if device.connected}
            for name in sorted(lost):
                devices.away(tx, name)
                if name in connected:  # one that left in good order is away already
                    tx.emit("device.lost", name, body={"reason": lost[name]})
            end = EndReason.DEVICE_LOST.value
            offers.add_reports(
                tx,
                [
                    offers.NewReport(self.name, row.key, gone=lost[row.device], gone_end=end, over=True)
                    for row in gone
                    if row.device is not None
                ],
            )
            offers.drop_lost(tx, list(lost))
            if self._passing:
                offers.remove_workers(tx, list(lost))


def _entries(row: WorkReport) -> list[JournalEntry]:
    return [decode_entry(entry) for entry in json.loads(row.entries)]


def _end(row: WorkReport) -> EndReason:
    return EndReason(row.gone_end) if row.gone_end else EndReason.OTHER


def _offer(order: Order) -> AttemptOffer:
    return AttemptOffer(
        order.key,
        order.gang,
        order.rank,
        max(1, order.workers),
        order.resources,
        order.wants,
        0.0,
        order.time_limit_s,
        isinstance(order.run, Trial),
        order.first,
    )


def _rooms(tx: Tx, executor: str) -> list[tuple[str, Room, Mapping[str, str]]]:
    labels = {row.name: row.labels for row in offers.workers_of(tx, executor) if not row.left}
    return [
        (each.name, each.capacity, labels[each.name])
        for each in devices.list_devices(tx)
        if each.name in labels and each.drain is None
    ]


def _sum(rooms: Sequence[tuple[Room, Mapping[str, str]]]) -> Room:
    """All devices together."""
    return Room(
        sum(room.vcpu for room, _ in rooms),
        sum(room.memory_mb for room, _ in rooms),
        tuple(share for room, _ in rooms for share in room.gpus),
    )

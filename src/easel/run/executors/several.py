"""This machine and the workers that joined it, as one executor: each order goes where there is most room for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from easel.declare.resources import Resources, Room
from easel.records.attempt import EndReason
from easel.run.executors.base import AttemptGone, Away, Beat, Connected, Executor, Report
from easel.run.order import Order

FULL = 2.0
"""An executor is given no more when what it has would fill it twice: the rest waits here for whoever is free."""


class Pulled(Executor, Protocol):
    """An executor whose devices come and go."""

    def rooms(self, project_id: str = "") -> Sequence[tuple[Room, Mapping[str, str]]]:
        """What each of its devices has, and its labels; of those that a project may use, where one is named."""


@dataclass(frozen=True, slots=True)
class ExecutorRoom:
    """One executor as the choice sees it: all it has, what was given to it, and whether the order suits it."""

    capacity: float
    given: float
    suits: bool


def choose(places: Sequence[ExecutorRoom], asked: Resources) -> int | None:
    """The suitable place that would be least full with the order, or None while all are twice full.

    One that alone suits is taken however full it is: it keeps the order's place in line.
    """
    suitable = [number for number, place in enumerate(places) if place.suits]
    if len(suitable) == 1:
        return suitable[0]

    def fullness(number: int) -> float:
        return (places[number].given + asked.vcpu) / max(places[number].capacity, 0.5)

    best = min(suitable, key=fullness, default=None)
    return best if best is not None and fullness(best) <= FULL else None


class Several:
    """`first` is this machine: without workers elsewhere, and for what they cannot hold, everything goes to it."""

    def __init__(self, first: Executor, other: Pulled) -> None:
        self.name = first.name
        self._all: tuple[Executor, ...] = (first, other)
        self._other = other
        self._capacity = Room(0.0, 0)
        self._where: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        self._held: dict[str, Order] = {}
        self._answers: dict[int, Connected] = {}
        self._said: list[Report] = []
        self._spared: frozenset[str] = frozenset()
        self._kept: Mapping[str, str] = {}

    def reserve(self, kept: Mapping[str, str]) -> None:
        self._kept = dict(kept)
        for executor in self._all:
            executor.reserve(kept)

    def spare(self, names: frozenset[str]) -> None:
        self._spared = names
        for executor in self._all:
            executor.spare(names)

    def connect(self, fence: int, seen: Mapping[str, int]) -> None:
        self._reset()
        for executor in self._all:
            executor.connect(fence, seen)

    def _reset(self) -> None:
        for known in (self._where, self._asked, self._held, self._answers):
            known.clear()
        self._said.clear()

    def start(self, order: Order) -> None:
        if order.gang in self._where:
            self._all[self._where[order.gang]].start(order)
            return
        self._held[order.gang] = order
        self._give()

    def _give(self) -> None:
        """Gives work in order of arrival; what must wait lets others pass, as on a device."""
        for key, order in list(self._held.items()):
            number = choose(self._places(order), order.resources)
            if number is None:
                continue
            del self._held[key]
            self._where[key] = number
            self._asked[key] = order.resources.vcpu * order.workers
            self._all[number].start(order)

    def _places(self, order: Order) -> list[ExecutorRoom]:
        rooms = self._other.rooms(order.project_id)
        kept = self._kept.get(self.name, order.project_id) != order.project_id
        spared = self.name in self._spared or kept
        if not rooms and order.workers == 1 and not order.wants and not spared:
            return [ExecutorRoom(self._capacity.vcpu, 0.0, True)]
        able = [room for room, labels in rooms if _wanted(order, labels) and room.fits(order.resources)]
        elsewhere = len(able) >= 1 and (order.workers == 1 or len(rooms) > 0)
        here = order.workers == 1 and not order.wants and not spared
        # What only strangers could hold waits for them; what nobody could is refused by this machine.
        larger = here and not elsewhere
        return [
            ExecutorRoom(
                self._capacity.vcpu, self._given(0), larger or (here and self._capacity.fits(order.resources))
            ),
            ExecutorRoom(sum(room.vcpu for room, _ in rooms), self._given(1), elsewhere or not here),
        ]

    def _given(self, number: int) -> float:
        return sum(self._asked.get(key, 1.0) for key, where in self._where.items() if where == number)

    def kill(self, key: str, *, force: bool = False) -> None:
        if self._held.pop(key, None) is not None:
            self._said.append(AttemptGone(key, "stopped before it began", EndReason.STOPPED))
        else:
            self._all[self._where.get(key, 0)].kill(key, force=force)

    def give_way(self, key: str) -> None:
        if key not in self._held:
            self._all[self._where.get(key, 0)].give_way(key)

    def forget(self, key: str, *, over: bool = True) -> None:
        self._held.pop(key, None)
        self._asked.pop(key, None)
        self._all[self._where.pop(key, 0)].forget(key, over=over)

    def resend(self, key: str, seen: int) -> None:
        self._all[self._where.get(key, 0)].resend(key, seen)

    def poll(self) -> list[Report]:
        for number, executor in enumerate(self._all):
            # Kept until all have answered: what one said must not be lost with the trouble of another.
            for report in executor.poll():
                if isinstance(report, Connected):
                    self._answers[number] = report
                    self._where |= dict.fromkeys(report.attempts, number)
                else:
                    self._said.append(report)
        reports, self._said = self._said, []
        if len(self._answers) == len(self._all):
            reports.insert(0, self._connected())
        away = next((report for report in reports if isinstance(report, Away)), None)
        if away is not None:  # all of them are connected, or none is
            self.close(stop=False)
            return [away]
        if self._held:
            self._give()
            reports.append(Beat(frozenset(self._held)))
        return reports

    def _connected(self) -> Connected:
        first = self._answers[0]
        self._capacity = first.capacity
        self._answers.clear()
        return Connected(first.capacity, frozenset(self._where), first.notes)

    def close(self, *, stop: bool) -> None:
        self._reset()
        for executor in self._all:
            executor.close(stop=stop)


def _wanted(order: Order, labels: Mapping[str, str]) -> bool:
    return all(labels.get(name) == value for name, value in order.wants.items())

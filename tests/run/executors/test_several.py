"""Two executors as one: the trouble of one loses nothing that the other has said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from easel.declare.resources import Room
from easel.errors import TryLater
from easel.records.job import Usage
from easel.run.entries import AttemptDone, JournalEntry
from easel.run.executors.base import Beat, Connected, Entries, Report
from easel.run.executors.several import Several
from easel.run.order import Order

HERE, ELSEWHERE = Room(2.0, 4096), Room(0.0, 0)


DONE = JournalEntry(7, 0.0, AttemptDone(Usage()))


class Scripted:
    """Says what it is told to, or fails as a database that is away does."""

    def __init__(self, name: str, capacity: Room) -> None:
        self.name, self.capacity = name, capacity
        self.says: list[Report] = []
        self.fails = False

    def connect(self, fence: int, seen: Mapping[str, int]) -> None:
        self.says.append(Connected(self.capacity, frozenset(), {}))

    def start(self, order: Order) -> None: ...
    def kill(self, key: str, *, force: bool = False) -> None: ...
    def forget(self, key: str, *, over: bool = True) -> None: ...
    def give_way(self, key: str) -> None: ...
    def resend(self, key: str, seen: int) -> None: ...
    def spare(self, names: frozenset[str]) -> None: ...
    def close(self, *, stop: bool) -> None: ...

    def reserve(self, kept: Mapping[str, str]) -> None: ...

    def rooms(self, project_id: str = "") -> Sequence[tuple[Room, Mapping[str, str]]]:
        return []

    def poll(self) -> list[Report]:
        if self.fails:
            raise TryLater("the database is away")
        said, self.says = self.says, []
        return said


def test_what_one_said_is_told_when_the_other_can_answer_again() -> None:
    local, pulled = Scripted("local", HERE), Scripted("remote", ELSEWHERE)
    both = Several(local, pulled)
    both.connect(1, {})
    assert [type(report) for report in both.poll()] == [Connected]
    local.says.append(Entries("job.1", [DONE]))
    pulled.fails = True
    for _ in range(2):
        with pytest.raises(TryLater):
            both.poll()
    pulled.fails = False
    local.says.append(Beat(frozenset({"job.2"})))
    assert both.poll() == [Entries("job.1", [DONE]), Beat(frozenset({"job.2"}))]

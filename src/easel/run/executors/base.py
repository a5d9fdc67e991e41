"""What an executor must do. Each sentence here has a test in `easel.testing.executor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from easel.declare.resources import Room
from easel.records.attempt import EndReason
from easel.run.entries import JournalEntry
from easel.run.order import Order


@dataclass(frozen=True, slots=True)
class Connected:
    """The executor is there (again): its capacity, the attempts that it knows, and notes for the doctor.

    `is_device` where the executor itself is the one device that it has; others' devices register themselves.
    """

    capacity: Room
    attempts: frozenset[str]
    notes: Mapping[str, str]
    is_device: bool = True


@dataclass(frozen=True, slots=True)
class Entries:
    """New entries of an attempt's journal, in order. May repeat entries; each carries its number."""

    key: str
    entries: list[JournalEntry]


@dataclass(frozen=True, slots=True)
class MemberSaid:
    """Lines that a member of a distributed attempt logged, other than the first one, whose log is the attempt's own.

    `report` names what was said: it counts once, however often it is told.
    """

    key: str
    rank: int
    report: int
    entries: list[JournalEntry]


@dataclass(frozen=True, slots=True)
class MemberEnded:
    """A member other than the first ended badly, and with it the whole attempt: how, and when."""

    key: str
    rank: int
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class AttemptGone:
    """No process of the attempt is left, and no journal says so: it never began, or its device is lost."""

    key: str
    reason: str
    end: EndReason = EndReason.OTHER


@dataclass(frozen=True, slots=True)
class Beat:
    """These attempts wait or run. `notes` are those of the device that changed, such as how busy its GPUs are."""

    alive: frozenset[str]
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Away:
    """The executor cannot be reached: connect again later. Its attempts may go on.

    `superseded` where it answered that somebody with a larger fence is in charge.
    """

    reason: str
    superseded: bool = False


Report = Connected | Entries | MemberSaid | MemberEnded | AttemptGone | Beat | Away


class Executor(Protocol):
    """Holds devices and runs attempts on them.

    Keys are `job.attempt`. Starting a key twice starts it once. An attempt starts when its resources fit,
    in order of arrival. A killed attempt ends with all of its processes, also those that forked away, and is
    then reported, by its journal's last entry or as gone. What was reported and not forgotten is reported
    again after `connect`. Orders under a fence smaller than the largest seen are refused.
    """

    name: str

    def connect(self, fence: int, seen: Mapping[str, int]) -> None:
        """Begin to talk, as the controller with this fence, who knows `seen[key]` entries of each attempt.

        Answers with Connected, or Away.
        """

    def start(self, order: Order) -> None: ...

    def spare(self, names: frozenset[str]) -> None:
        """Begin nothing more on these devices until they are not named any more.

        What waits on one of them is said to be gone, stopped; what runs there goes on.
        """

    def reserve(self, kept: Mapping[str, str]) -> None:
        """Begin on each of these devices only attempts of the project that it is kept for."""

    def kill(self, key: str, *, force: bool = False) -> None:
        """Ask the attempt to end, after its grace make it; with `force` at once."""

    def give_way(self, key: str) -> None:
        """Ask a trial to stop at its next checkpoint. An executor that cannot tell it lets the slice end by itself."""

    def forget(self, key: str, *, over: bool = True) -> None:
        """All of it is known and kept: remove what is left, and end it if it still runs.

        Unless the job is `over`, what it left for its next attempt stays.
        """

    def resend(self, key: str, seen: int) -> None:
        """Say the attempt's journal again but for its first `seen` entries: one of them did not arrive."""

    def poll(self) -> list[Report]:
        """What happened since; never waits."""

    def close(self, *, stop: bool) -> None:
        """Stop talking; with `stop` also end the executor and everything on it."""

"""Who is let through next: one first-in-first-out queue for each (project, user), by one fair share for everybody.

Deciding only. The store says what waits, what is active and what everybody used; `choose` says which jobs leave their
queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from easel.ids import JobId
from easel.records.queue import Line, Owner
from easel.run.share import Shares


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The jobs to launch, in order, whose they are, and the new `served` of each owner that got a turn.

    `first` are jobs of newcomers: devices begin them before what waits there already.
    """

    jobs: tuple[JobId, ...]
    served: Mapping[Owner, int]
    owners: tuple[Owner, ...] = ()
    first: frozenset[JobId] = frozenset()


LOOKAHEAD_S = 1.0
"""So much work may wait on a device that is busy, so that it never idles between two short jobs."""


def launch_room(buffer: int, launching: int, cores: float, busy: float, typical_s: float) -> int:
    """How many more jobs may leave the queue: as many as find free cores now, and a second's work beside.

    Where nothing is known of the devices (`cores` 0) or of the jobs (`typical_s` 0), up to `buffer`.
    """
    if cores <= 0.0 or typical_s <= 0.0:
        return max(buffer - launching, 0)
    most = math.ceil(max(cores - busy, 0.0)) + int(cores * LOOKAHEAD_S / typical_s)
    return max(min(buffer, most) - launching, 0)


def may_begin(launching: Sequence[float], cores: float, sessions: float) -> int:
    """How many of the jobs that wait for a device, by their vCPU, find room on one of so many cores while the
    interactive sessions there, which hold `sessions` cores, go on."""
    return sum(vcpu <= cores - sessions for vcpu in launching)


def newcomer_room(buffer: int, launching: int, cores: float, busy: float, typical_s: float) -> int:
    """How many more than `launch_room` may leave the queue of people of whom nothing is active, one for each core.

    They need not wait for the second's work that was let through ahead of them: devices begin them first. Where jobs
    are too long for any to be let through ahead, the next free core is theirs anyway.
    """
    if cores <= 0.0 or typical_s <= 0.0 or int(cores * LOOKAHEAD_S / typical_s) == 0:
        return 0
    usual = launch_room(buffer, launching, cores, busy, typical_s)
    most = math.ceil(max(cores - busy, 0.0)) + int(cores * LOOKAHEAD_S / typical_s) + math.ceil(cores)
    return max(min(buffer, most) - launching - usual, 0)


def kept_room(least: float, cores: float, held: float) -> int:
    """How many jobs of one core go before everybody else's, for work that holds `held` cores of the pool and is kept a
    `least` share of it."""
    return max(math.ceil(least * cores - held - 1e-9), 0)


def without(lines: Sequence[Line], chosen: QueueChoice) -> list[Line]:
    """The lines once these jobs have left them."""
    gone = set(chosen.jobs)
    left = []
    for line in lines:
        rest = tuple(job for job in line.waiting if job not in gone)
        taken = sum(turned == line.owner for turned in chosen.owners)
        usage = line.usage + taken * line.charge
        left.append(replace(line, waiting=rest, active=line.active + taken, usage=usage))
    return left


def choose(
    lines: Sequence[Line],
    room: int,
    turn: int,
    others: Mapping[Owner, float] | None = None,
    beyond: int = 0,
) -> QueueChoice:
    """Returns at most `room` jobs, one at a time from the line with the best claim, and up to `beyond` of newcomers.

    Newcomers are owners of whom nothing is active and whose claim is no worse than that of anybody who has something.

    The claim is the share used so far by weight (`Shares`), what was just let through counted as if it had run. Among
    equal claims the line with the fewest active goes first, then the longest unserved. `others` is the usage of
    owners that wait for nothing: it counts for their projects.
    """
    shares = Shares.of(lines, others)
    open_lines = [line for line in lines if line.room > 0 and line.waiting]
    taken = dict.fromkeys((line.owner for line in open_lines), 0)
    served: dict[Owner, int] = {line.owner: line.served for line in open_lines}
    jobs: list[JobId] = []
    first: set[JobId] = set()
    turns: dict[Owner, int] = {}
    owners: list[Owner] = []

    def urgency(line: Line) -> tuple[tuple[float, float, float], int, int, Owner]:
        return shares.claim(line), line.active + taken[line.owner], served[line.owner], line.owner

    def newcomers() -> list[Line]:
        # whoever had a job only just now is none: it would always have a place of its own, whatever its weight
        busy = [shares.claim(line) for line in lines if line.active + taken.get(line.owner, 0) > 0]
        best = min(busy, default=None)
        idle = (line for line in open_lines if line.active + taken[line.owner] == 0)
        return [line for line in idle if best is None or shares.claim(line) <= best]

    while open_lines and len(jobs) < room + beyond:
        new = newcomers()
        able = new if len(jobs) >= room else open_lines
        if not able:
            break
        line = min(able, key=urgency)
        owner = line.owner
        jobs.append(line.waiting[taken[owner]])
        owners.append(owner)
        if line in new:
            first.add(jobs[-1])
        turn += 1
        taken[owner] += 1
        turns[owner] = served[owner] = turn
        shares.add(owner, line.charge)
        if taken[owner] >= min(len(line.waiting), line.room):
            open_lines.remove(line)
    return QueueChoice(tuple(jobs), turns, tuple(owners), frozenset(first))

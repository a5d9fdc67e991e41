"""Who is let through next: one first-in-first-out queue for each (project, user), by one fair share for everybody.

Deciding only. The store says what waits, what is active and what everybody used; `choose` says which jobs leave their
queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.ids import JobId
from easel.records.queue import Line, Owner
from easel.run.share import Shares


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The jobs to launch, in order, and the new `served` of each owner that got a turn."""

    jobs: tuple[JobId, ...]
    served: Mapping[Owner, int]


LOOKAHEAD_S = 1.0
"""So much work may wait on a device that is busy, so that it never idles between two short jobs."""


def launch_room(buffer: int, launching: int, cores: float, busy: float, typical_s: float) -> int:
    """How many more jobs may leave the queue: as many as find free cores now, and a second's work beside.

    What has left the queue is served in order: the fewer wait there, the sooner a newcomer's turn comes. Where
    nothing is known of the devices (`cores` 0) or of the jobs (`typical_s` 0), up to `buffer`.
    """
    if cores <= 0.0 or typical_s <= 0.0:
        return max(buffer - launching, 0)
    most = math.ceil(max(cores - busy, 0.0)) + int(cores * LOOKAHEAD_S / typical_s)
    return max(min(buffer, most) - launching, 0)


def choose(
    lines: Sequence[Line], room: int, turn: int, others: Mapping[Owner, float] | None = None
) -> QueueChoice:
    """Returns at most `room` jobs, one at a time from the line with the best claim.

    The claim is the share used so far by weight (`Shares`), what was just let through counted as if it had run. Among
    equal claims the line with the fewest active goes first, then the longest unserved. `others` is the usage of
    owners that wait for nothing: it counts for their projects.
    """
    shares = Shares.of(lines, others)
    open_lines = [line for line in lines if line.room > 0 and line.waiting]
    taken = dict.fromkeys((line.owner for line in open_lines), 0)
    served: dict[Owner, int] = {line.owner: line.served for line in open_lines}
    jobs: list[JobId] = []
    turns: dict[Owner, int] = {}

    def urgency(line: Line) -> tuple[tuple[float, float, float], int, int, Owner]:
        return shares.claim(line), line.active + taken[line.owner], served[line.owner], line.owner

    while open_lines and len(jobs) < room:
        line = min(open_lines, key=urgency)
        owner = line.owner
        jobs.append(line.waiting[taken[owner]])
        turn += 1
        taken[owner] += 1
        turns[owner] = served[owner] = turn
        shares.add(owner, line.charge)
        if taken[owner] >= min(len(line.waiting), line.room):
            open_lines.remove(line)
    return QueueChoice(tuple(jobs), turns)

"""Who is let through next: one first-in-first-out queue for each (project, user), fair among the queues.

Deciding only. The store says what waits and what is active; `choose` says which jobs leave their queues.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.ids import JobId
from easel.records.queue import Line, Owner


@dataclass(frozen=True, slots=True)
class Choice:
    """The jobs to launch, in order, and the new `served` of each owner that got a turn."""

    jobs: tuple[JobId, ...]
    served: Mapping[Owner, int]


def choose(lines: Sequence[Line], room: int, turn: int) -> Choice:
    """At most `room` jobs, one at a time from the line with the fewest active, then the longest unserved.

    Fewest active first means that a newcomer is served before somebody who already fills half of the pool,
    and that among equals turns are taken.
    """
    heads = [
        (line.active, line.served, line.owner, 0, line) for line in lines if line.room > 0 and line.waiting
    ]
    heapq.heapify(heads)
    jobs: list[JobId] = []
    served: dict[Owner, int] = {}
    while heads and len(jobs) < room:
        active, _, owner, taken, line = heapq.heappop(heads)
        jobs.append(line.waiting[taken])
        turn += 1
        served[owner] = turn
        if taken + 1 < min(len(line.waiting), line.room):
            heapq.heappush(heads, (active + 1, turn, owner, taken + 1, line))
    return Choice(tuple(jobs), served)

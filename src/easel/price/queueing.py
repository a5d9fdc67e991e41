"""How long a new job will wait: the queue played forward with predicted runtimes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from easel.errors import InvalidInput


@dataclass(frozen=True)
class Held:
    """A running job: its processors and the seconds it is expected to hold them still (0 when overdue)."""

    cpus: float
    seconds_left: float


@dataclass(frozen=True)
class Waiting:
    """A job ahead in the queue."""

    cpus: float
    seconds: float


def expected_wait(capacity_cpus: float, held: Sequence[Held], ahead: Sequence[Waiting], cpus: float) -> float:
    """Seconds until a job that needs `cpus` starts, when jobs start in order as soon as they fit (no
    overtaking).
    """
    if cpus > capacity_cpus:
        raise InvalidInput(
            f"a job of {cpus} vCPU never fits a pool of {capacity_cpus}: choose a smaller size"
        )
    ends = [(max(job.seconds_left, 0.0), job.cpus) for job in held]
    heapq.heapify(ends)
    free, now = capacity_cpus - sum(job.cpus for job in held), 0.0
    for job in (*ahead, Waiting(cpus, 0.0)):
        # A job larger than the pool would block it for ever; the scheduler will refuse it, so it is passed
        # over.
        if job.cpus > capacity_cpus:
            continue
        while free < job.cpus - 1e-9:
            end, released = heapq.heappop(ends)
            now, free = max(now, end), free + released
        free -= job.cpus
        heapq.heappush(ends, (now + job.seconds, job.cpus))
    return now

"""How long jobs of the past would have waited on pools of other sizes, and which size is worth its money.

Deciding only. The queue is the one of `forecast`: fair shares, labels, memory and GPUs by device; nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from easel.declare.resources import Resources, Room
from easel.ids import JobId
from easel.records.queue import Line, Owner
from easel.run.forecast import NEVER, ForecastDevice, QueueNow, Spread, WaitingJob, expected_starts

WORTH = 0.1
"""A larger pool is worth its money where waiting, or the time to everybody's best model, falls by this share."""
SHORT_S = 60.0
"""Waiting below this is as good as none."""
NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job as it was: seconds from the beginning of the history to its arrival, and how long it held its devices.

    One that `follows` (a trial of an app, a step after others) arrived when there was room: it is load, not waiting.
    """

    owner: Owner
    arrived: float
    seconds: float
    asked: Resources
    workers: int = 1
    wants: Mapping[str, str] | None = None
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long ordinary jobs waited: the mean, and what nine of ten stayed below; `never` counts what fits nowhere."""

    mean_s: float
    most_s: float
    never: int = 0


@dataclass(frozen=True, slots=True)
class PoolSize:
    """A pool with `more` units than today's. `to_best_s` is when everybody's best model is as good as today's pool ever
    makes it, None where there are no apps to say so; `per_month` is what the additional units cost."""

    more: int
    waiting: Waiting
    to_best_s: float | None
    per_month: float


def waits(past: Sequence[PastJob], devices: Sequence[ForecastDevice]) -> Waiting:
    """Replays the history on these devices."""
    jobs = [
        WaitingJob(
            JobId(str(number)),
            job.owner,
            job.asked,
            Spread(job.seconds),
            wants=dict(job.wants or {}),
            workers=job.workers,
            arrives=job.arrived,
        )
        for number, job in enumerate(past)
    ]
    lines = {job.owner: Line(job.owner, (), 0, NO_LIMIT) for job in past}
    now = QueueNow(devices, (), jobs, lines)
    found = expected_starts(now, np.random.default_rng(0), plays=1)
    ordinary = [number for number, job in enumerate(past) if not job.follows]
    starts = [float(found[JobId(str(number))].start[0]) - past[number].arrived for number in ordinary]
    waited = [max(0.0, start) for start in starts if start != NEVER]
    return _waiting(waited, len(starts) - len(waited))


def _waiting(waited: Sequence[float], never: int) -> Waiting:
    if not waited:
        return Waiting(0.0, 0.0, never)
    return Waiting(mean(waited), float(np.quantile(waited, 0.9, method="higher")), never)


def larger(devices: Sequence[ForecastDevice], unit: Room, more: int) -> list[ForecastDevice]:
    """Returns the pool with `more` units: GPUs join as one device, machines without any as so many of them."""
    if more <= 0:
        return list(devices)
    if unit.gpus:
        whole = Room(unit.vcpu * more, unit.memory_mb * more, (1.0,) * more)
        return [*devices, ForecastDevice("more", whole)]
    return [*devices, *(ForecastDevice(f"more {i}", unit) for i in range(more))]


def unit_of(devices: Sequence[ForecastDevice], past: Iterable[PastJob]) -> Room:
    """Returns what one more is: where jobs use GPUs one with its part of a machine, else the most usual machine."""
    cards = [device.capacity for device in devices if device.capacity.gpus]
    if cards and any(job.asked.gpus for job in past):
        count = sum(len(room.gpus) for room in cards)
        return Room(
            sum(room.vcpu for room in cards) / count, sum(room.memory_mb for room in cards) // count, (1.0,)
        )
    rooms = [device.capacity for device in devices]
    return max(rooms, key=lambda room: (rooms.count(room), room.vcpu))


def recommended(sizes: Sequence[PoolSize]) -> PoolSize:
    """Returns the smallest pool that no larger one beats by enough: `sizes` grow, today's is the first."""
    for number, size in enumerate(sizes):
        if not any(_worth(size, other) for other in sizes[number + 1 :]):
            return size
    return sizes[-1]


def _worth(size: PoolSize, other: PoolSize) -> bool:
    """Whether a larger pool lets more jobs run, or saves enough of the waiting or of the time to the best models."""
    needed = WORTH * (other.more - size.more)
    shorter = size.waiting.most_s > SHORT_S and _saved(size.waiting.most_s, other.waiting.most_s) >= needed
    sooner = (
        size.to_best_s is not None
        and other.to_best_s is not None
        and _saved(size.to_best_s, other.to_best_s) >= needed
    )
    return other.waiting.never < size.waiting.never or shorter or sooner


def _saved(before: float, after: float) -> float:
    return 1.0 - after / before if before > 0.0 and math.isfinite(before) else 0.0

"""Which size of the pool is worth its money, by what the installation itself did: ordinary jobs and trials of apps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from easel.declare.counted import counted
from easel.declare.resources import Resources, Room
from easel.errors import InvalidInput
from easel.flow.jobs.control import devices_now
from easel.flow.prices import book_now
from easel.flow.simulate import Past, apart, candidate_of
from easel.ids import ProjectId, UserId
from easel.price.grid import ANY_GPU
from easel.run.forecast import ForecastDevice
from easel.run.pool_sizes import PastJob, PoolSize, Waiting, recommended, unit_of
from easel.store import past_jobs
from easel.store.engine import Tx
from easel.store.past_jobs import JobThatHeld

MOST_JOBS, MOST_TRIALS = 5_000, 20_000
HOURS_A_MONTH = 730.5
_PRICE_LABEL = "price_per_hour"


@dataclass(frozen=True, slots=True)
class PoolPast:
    """What is replayed: the pool as it is, what came to it, and what one unit more costs in an hour."""

    devices: tuple[ForecastDevice, ...]
    jobs: tuple[PastJob, ...]
    trials: tuple[Past, ...]
    unit: Room
    per_hour: float
    currency: str
    days: float

    @property
    def units(self) -> int:
        """How many units the pool has today."""
        if self.unit.gpus:
            return sum(len(device.capacity.gpus) for device in self.devices)
        return len(self.devices)


@dataclass(frozen=True, slots=True)
class PoolAdvice:
    """The sizes that were tried, today's first, the one that is recommended, and that in words."""

    unit: str
    units: int
    jobs: int
    trials: int
    days: float
    currency: str
    sizes: tuple[PoolSize, ...]
    recommended: int
    words: str


def past_of_pool(tx: Tx, days: float, per_hour: float | None = None) -> PoolPast:
    """Returns the history of the last `days`; InvalidInput where there is none to learn from."""
    since = tx.now - timedelta(days=days)
    rows = past_jobs.held_since(tx, since, MOST_JOBS)
    if not rows:
        raise InvalidInput(f"no job has run in the last {days:g} days: nothing to learn from")
    open_devices = [device for device in devices_now(tx) if device.connected]
    if not open_devices:
        raise InvalidInput("no device is connected: there is no pool to compare with")
    devices = tuple(ForecastDevice(each.name, each.capacity, each.labels) for each in open_devices)
    followers = past_jobs.with_needs(tx)
    start = min(row.submitted_at for row in rows)
    jobs = tuple(_past_job(row, start, row.kind == "trial" or row.id in followers) for row in rows)
    unit = unit_of(devices, jobs)
    book = book_now(tx)
    if per_hour is None:
        said = [_number(device.labels.get(_PRICE_LABEL)) for device in devices]
        known = [price for price in said if price is not None]
        kind = book.gpu_kind(ANY_GPU) if unit.gpus else None
        asked = (unit.vcpu, unit.memory_mb, kind, len(unit.gpus))
        per_hour = max(known) if known and not unit.gpus else float(book.rate(*asked))
    trials = tuple(
        Past(row.app_id, candidate_of(row.candidate), row.quality, row.seconds)
        for row in past_jobs.trials_since(tx, since, MOST_TRIALS)
        if row.seconds
    )
    return PoolPast(devices, jobs, trials, unit, per_hour, book.currency, days)


def _past_job(row: JobThatHeld, start: datetime, follows: bool) -> PastJob:
    resources: Mapping[str, Any] = row.spec["resources"]
    came = row.held_at if follows else row.submitted_at
    return PastJob(
        (ProjectId(row.project_id), UserId(row.user_id)),
        (came - start).total_seconds(),
        max((row.ended_at - row.held_at).total_seconds(), 0.001),
        Resources(float(resources["vcpu"]), int(resources["memory_mb"]), float(resources["gpus"])),
        int(row.spec.get("workers", 1)),
        dict(row.spec.get("wants") or {}),
        follows,
    )


def _number(said: str | None) -> float | None:
    try:
        return None if said is None else float(said)
    except ValueError:
        return None


def advise(past: PoolPast, more: Sequence[int], limit_s: float = 120.0) -> PoolAdvice:
    """Replays the past on pools with so many units more, in a process of its own, and says which is worth it."""
    tried = sorted({0, *more})
    if tried[0] < 0:
        raise InvalidInput("say how many units more: 1, 2, 4")
    found = apart({"sizes": tried, "past": asdict(past)}, limit_s)
    sizes = tuple(
        PoolSize(each["more"], Waiting(**each["waiting"]), each["to_best_s"], each["per_month"])
        for each in found
    )
    chosen = recommended(sizes)
    unit = "GPU" if past.unit.gpus else "device"
    words = in_words(sizes[0], chosen, unit, past.currency)
    ordinary = sum(not job.follows for job in past.jobs)
    return PoolAdvice(
        unit, past.units, ordinary, len(past.trials), past.days, past.currency, sizes, chosen.more, words
    )


def in_words(today: PoolSize, chosen: PoolSize, unit: str, currency: str) -> str:
    """Returns the recommendation as a sentence: how many more, what they bring, what they cost."""
    waiting = _time(today.waiting.most_s)
    if chosen.more == 0:
        return f"Today's pool is enough: nine of ten jobs start within {waiting}, and more would not change much."
    gains = []
    if today.to_best_s and chosen.to_best_s is not None and chosen.to_best_s < today.to_best_s:
        gains.append(
            f"everybody's best model {1.0 - chosen.to_best_s / today.to_best_s:.0%} sooner".replace("%", " %")
        )
    gains.append(f"waiting {waiting} → {_time(chosen.waiting.most_s)}")
    if chosen.waiting.never < today.waiting.never:
        gains.append(
            f"room for {counted(today.waiting.never - chosen.waiting.never, 'job')} that fit nowhere today"
        )
    count = {1: "One", 2: "Two", 3: "Three", 4: "Four"}.get(chosen.more, str(chosen.more))
    money = (
        f"{chosen.per_month:,.0f} {currency} a month" if chosen.per_month else "at no price in the price book"
    )
    return f"{count} more {unit}{'s' if chosen.more > 1 else ''}: {', '.join(gains)}, {money}."


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "for ever"
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"

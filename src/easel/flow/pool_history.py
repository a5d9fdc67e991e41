"""The pool's use over time: how much of it which project held, in equal spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from easel.errors import InvalidInput
from easel.flow.jobs.control import devices_now
from easel.records.identity import Caller
from easel.store import pool_use
from easel.store.engine import Tx
from easel.store.pool_use import HeldSpan

SPANS = 60
MOST_HOURS = 24 * 92
MOST_ATTEMPTS = 50_000
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class HeldOverTime:
    """What one project held on average in each span."""

    project: str
    vcpu: tuple[float, ...]
    gpus: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """Use since a moment in spans of `step`; what the pool has now; `complete` unless there were too many attempts."""

    since: datetime
    step: timedelta
    vcpu: float
    gpus: float
    held: tuple[HeldOverTime, ...]
    complete: bool


def use_over_time(tx: Tx, caller: Caller | None, hours: float) -> PoolHistory:
    """Returns the use of the last `hours`, by project, who used most first.

    For a caller in a project: its own, and that of all others together, unnamed. Without one: each by its name.
    """
    if not 0 < hours <= MOST_HOURS:
        raise InvalidInput(f"hours must lie between 0 and {MOST_HOURS}")
    whole = timedelta(hours=hours)
    since, step = tx.now - whole, whole / SPANS
    spans = pool_use.held_since(tx, since, MOST_ATTEMPTS)
    complete = sum(span.end is not None for span in spans) < MOST_ATTEMPTS
    if caller is not None:
        assert caller.project is not None
        mine = caller.project.name
        names: Mapping[str, str] = {s.project: mine if s.project == mine else OTHERS for s in spans}
    else:
        names = {s.project: s.project for s in spans}
    capacity = [device.capacity for device in devices_now(tx) if device.connected]
    return PoolHistory(
        since,
        step,
        sum(one.vcpu for one in capacity),
        sum((sum(one.gpus) for one in capacity), 0.0),
        tuple(held_by(spans, names, since, step, tx.now)),
        complete,
    )


def held_by(
    spans: Iterable[HeldSpan], names: Mapping[str, str], since: datetime, step: timedelta, now: datetime
) -> list[HeldOverTime]:
    """Returns the mean use in each span by name; the last span ends now."""
    vcpu: dict[str, list[float]] = {}
    gpus: dict[str, list[float]] = {}
    for span in spans:
        start, end = max(span.start, since), min(span.end or now, now)
        shares = _shares((start - since) / step, (end - since) / step)
        name = names[span.project]
        for held, amount in ((vcpu, span.vcpu), (gpus, span.gpus)):
            sums = held.setdefault(name, [0.0] * SPANS)
            for i, share in shares:
                sums[i] += amount * share
    ranked = sorted(vcpu, key=lambda name: (-sum(vcpu[name]) - sum(gpus[name]), name))
    return [HeldOverTime(name, tuple(vcpu[name]), tuple(gpus[name])) for name in ranked]


def _shares(start: float, end: float) -> Sequence[tuple[int, float]]:
    """Returns which part of each span lies between two places that are counted in spans."""
    first, last = max(0, int(start)), min(SPANS - 1, int(end))
    found = ((i, min(end, i + 1) - max(start, i)) for i in range(first, last + 1))
    return [(i, share) for i, share in found if share > 0]

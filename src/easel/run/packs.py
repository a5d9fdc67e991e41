"""Which waiting trials belong together, and which still wait for the rest of theirs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from easel.declare.job import Trial
from easel.run.attempts import Attempt

GATHER_S = 2.0
"""So long the first of a pack waits for the others: they were sent at once, and some may run elsewhere."""


def pack_of(attempt: Attempt) -> str | None:
    """Names the pack that a trial is started with; a later attempt at it goes by itself, from its checkpoints."""
    run = attempt.order.run
    if not isinstance(run, Trial) or run.pack is None or attempt.order.attempt > 1:
        return None
    return run.pack.name


def gathering_packs(waiting: Iterable[Attempt], now: float) -> frozenset[str]:
    """Returns the packs that are not complete and whose first trial has not waited for long."""
    here: Counter[str] = Counter()
    size: dict[str, int] = {}
    since: dict[str, float] = {}
    for attempt in waiting:
        name = pack_of(attempt)
        run = attempt.order.run
        if name is not None and isinstance(run, Trial) and run.pack is not None:
            here[name] += 1
            size[name] = run.pack.size
            since[name] = min(since.get(name, attempt.since), attempt.since)
    return frozenset(name for name in here if here[name] < size[name] and now - since[name] < GATHER_S)

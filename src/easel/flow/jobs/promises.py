"""What waiting jobs are told about their start and end, kept, and scored when they have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from easel.flow.jobs.expected import forecast_of, queue_as_it_is
from easel.ids import JobId, ProjectId
from easel.records.identity import Caller
from easel.run.calibrate import LEVELS, Correction, Forecast, ForecastOutcome, corrected_by
from easel.run.forecast import expected_starts
from easel.run.share import HALF_LIFE_S
from easel.store import promises
from easel.store.engine import Store, Tx
from easel.store.promises import KeptPromise

NEAR = 0.3
"""An expected start counts as right within so much of the wait."""
LAST = 1000
"""So many promises are scored, the newest."""
LEARNED_FROM = 200
"""So many correct the next."""


@dataclass(frozen=True, slots=True)
class PromiseOutcome:
    """One promise and what came of it, in seconds from when it was made; None: it was told never."""

    start: float | None
    ends: Mapping[str, float | None]
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class PromiseScore:
    """Over `jobs` promises: the share that was kept at each level, and the share of expected starts within a third
    of the wait; of those that waited for longer than `waited_s` too, for whom it matters."""

    jobs: int
    kept: Mapping[float, float]
    near_starts: float | None
    waited: int
    near_starts_of_waited: float | None
    waited_s: float = 5.0


def score(found: Sequence[PromiseOutcome], waited_s: float = 5.0) -> PromiseScore:
    """Returns how often promises were kept."""
    kept = {
        level: float(np.mean([_within(one.ended, one.ends.get(name)) for one in found])) if found else 0.0
        for name, level in LEVELS.items()
    }
    long = [one for one in found if one.started > waited_s]
    return PromiseScore(len(found), kept, _near(found), len(long), _near(long), waited_s)


def _within(ended: float, by: float | None) -> bool:
    return by is None or ended <= by


def _near(found: Sequence[PromiseOutcome]) -> float | None:
    if not found:
        return None
    right = [one.start is not None and abs(one.started - one.start) <= NEAR * one.started for one in found]
    return float(np.mean(right))


def score_promises(tx: Tx, caller: Caller | None, last: int = LAST) -> PromiseScore:
    """Scores promises to the caller's project; with None to everybody."""
    project = None if caller is None else caller.project_id
    found = [_came_to(row) for row in promises.came_true(tx, project, last)]
    return score([outcome for outcome in found if outcome is not None])


def _came_to(row: KeptPromise) -> PromiseOutcome | None:
    """Returns what came of a promise; None where it is not known when the job began or ended."""
    if row.held_at is None or row.ended_at is None:
        return None

    def seconds(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - row.made_at).total_seconds()

    ends = {name: seconds(getattr(row, name)) for name in LEVELS}
    started = max((row.held_at - row.made_at).total_seconds(), 0.0)
    return PromiseOutcome(seconds(row.start_at), ends, started, (row.ended_at - row.made_at).total_seconds())


def correction(tx: Tx, among: int = LEARNED_FROM) -> Correction:
    """What the last promises to anybody teach about the next."""
    past = []
    for row in promises.came_true(tx, None, among, settled=True):
        came = _came_to(row)
        if row.forecast and came is not None:
            start, end, *ends = (np.inf if value is None else float(value) for value in row.forecast)
            made = Forecast(start, end, dict(zip(LEVELS, ends, strict=True)))
            past.append(ForecastOutcome(made, came.started, came.ended, came.ends))
    return corrected_by(past)


def row_of(
    job_id: JobId, project_id: ProjectId, now: datetime, told: Forecast, forecast: Forecast | None = None
) -> dict[str, Any]:
    """A promise as it is kept. `forecast` is what it was made from, where later ones may learn from that."""

    def moment(seconds: float) -> datetime | None:
        return now + timedelta(seconds=seconds) if np.isfinite(seconds) else None

    raw = None
    if forecast is not None:
        values = [forecast.start, forecast.end, *forecast.ends.values()]
        raw = [value if np.isfinite(value) else None for value in values]
    made = {"job_id": job_id, "project_id": project_id, "made_at": now, "forecast": raw}
    return {**made, "start_at": moment(told.start), **{name: moment(end) for name, end in told.ends.items()}}


@dataclass
class PromiseKeeper:
    """Tells jobs that begin to wait when they will start and end. Works at most a tenth of the time."""

    store: Store
    max_active: int
    half_life_s: float = HALF_LIFE_S
    clock: Callable[[], float] = time.monotonic
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _rest_until: float = float("-inf")

    def turn(self) -> int:
        """How many jobs were told something."""
        began = self.clock()
        if began < self._rest_until:
            return 0
        with self.store.read() as tx:
            new = promises.untold(tx)
            if not new:
                return 0
            now, queue = tx.now, queue_as_it_is(tx, self.max_active, self.half_life_s)
            learned = correction(tx)
        owners = {job.job: job.owner for job in queue.waiting}
        found = expected_starts(queue, self.rng)
        rows = []
        for job in new:
            if job in found:
                raw = forecast_of(found[job])
                rows.append(row_of(job, owners[job][0], now, learned.applied(raw), raw))
        with self.store.write() as tx:
            promises.add(tx, rows)
        self._rest_until = self.clock() + 9 * (self.clock() - began)
        return len(rows)

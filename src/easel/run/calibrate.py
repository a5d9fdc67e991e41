"""Promises corrected by what came of earlier ones. Deciding only.

A forecast knows the spread of single jobs; how far this machine and these users are from its assumptions shows only
afterwards. What was forecast is kept beside what was told: the one says how wide forecasts must be, the other how many
promises were broken so far. Jobs of one queue are late together, so that widths alone lag behind: each broken promise
moves the next ones a little further, each kept one a little nearer. That holds the share that is kept near its level
whatever the queue does (adaptive conformal inference, Gibbs and Candès 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

LEVELS: Mapping[str, float] = {"end_80": 0.8, "end_90": 0.9, "end_95": 0.95}
"""The probabilities at which ends are promised, by the names they are kept under."""
FEW = 10
"""So many outcomes as the forecast itself expects are counted beside the real ones."""
_NORMAL = NormalDist()
LEAST_WIDTH = 0.02
"""Of an end told at some level above the middle one, in logarithms: less is noise."""
MOST = 4.0
STEP = 0.15
"""How much wider, in widths of the forecast, a promise becomes for each one broken beyond what its level allows."""
MOST_STEPS = 0.3
"""The furthest that this moves a promise: what came of the last dozen is not known yet, and larger moves swing."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now: the middle of the start and of the end, and the end at each level; infinite for never."""

    start: float
    end: float
    ends: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ForecastOutcome:
    """A forecast and when the job started and ended, in seconds from then; and the ends that were `told`."""

    forecast: Forecast
    started: float
    ended: float
    told: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Correction:
    """`start` moves the logarithm of starts; at each level the end lies `widths` times as far from its middle."""

    start: float = 0.0
    widths: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LEVELS, 1.0))

    def applied(self, raw: Forecast) -> Forecast:
        """What is told; a higher level never ends earlier than a lower one."""
        if not (math.isfinite(raw.start) and math.isfinite(raw.end)) or raw.end <= 0.0:
            return raw
        ends: dict[str, float] = {}
        latest = 0.0
        for name in LEVELS:
            width = math.log(max(raw.ends[name], raw.end) / raw.end)
            told = raw.end * math.exp(self.widths[name] * max(width, LEAST_WIDTH))
            latest = ends[name] = max(told if math.isfinite(raw.ends[name]) else math.inf, latest)
        start = raw.start * math.exp(self.start)
        return Forecast(start, max(raw.end, start), ends)


def corrected_by(past: Sequence[ForecastOutcome]) -> Correction:
    """Returns the correction under which `past` promises would have been kept as often as their levels say, moved by
    how many of them were kept.
    """
    known = [
        one for one in past if math.isfinite(one.forecast.end) and one.forecast.end > 0.0 and one.ended > 0.0
    ]
    if not known:
        return Correction()
    widths = {}
    for name, level in LEVELS.items():
        beyond = [_NORMAL.inv_cdf((k + 0.5) / FEW) / _NORMAL.inv_cdf(level) for k in range(FEW)] + [
            math.log(one.ended / one.forecast.end)
            / max(math.log(max(one.forecast.ends[name], one.forecast.end) / one.forecast.end), LEAST_WIDTH)
            for one in known
            if math.isfinite(one.forecast.ends[name])
        ]
        fitted = float(np.quantile(beyond, level)) + _steps(known, name, level)
        widths[name] = float(np.clip(fitted, -MOST, MOST))
    waits = [
        math.log(max(one.started, 0.1) / max(one.forecast.start, 0.1))
        for one in known
        if one.forecast.start > 1.0
    ]
    moved = float(np.clip(np.median(waits + [0.0] * FEW), -math.log(2.0), math.log(2.0)))
    return Correction(moved, widths)


def _steps(past: Sequence[ForecastOutcome], name: str, level: float) -> float:
    """Returns how much wider promises at a level are to be, by those that were broken beyond what it allows."""
    told = [(one.ended, by) for one in past if (by := one.told.get(name)) is not None]
    beyond = sum(ended > by for ended, by in told) - (1.0 - level) * len(told)
    return float(np.clip(STEP * beyond, -MOST_STEPS, MOST_STEPS))

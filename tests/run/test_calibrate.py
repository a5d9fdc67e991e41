"""Promises that are corrected by what came of earlier ones."""

from __future__ import annotations

import math

import numpy as np

from easel.run.calibrate import LEVELS, Forecast, ForecastOutcome, corrected_by


def shares_kept(seed: int, *, counted: bool) -> dict[str, float]:
    """How many of 220 promises in a queue are kept whose jobs are late together, each told 12 jobs after the last
    outcome that is known. `counted` tells the correction how many were kept so far.
    """
    rng, raw = (
        np.random.default_rng(seed),
        Forecast(50.0, 100.0, {"end_80": 118.0, "end_90": 129.0, "end_95": 138.0}),
    )
    common, past = 0.0, list[ForecastOutcome]()
    kept: dict[str, list[bool]] = {name: [] for name in LEVELS}
    for number in range(290):
        common = 0.93 * common + math.sqrt(1 - 0.93**2) * rng.normal()
        ended = 100.0 * math.exp(0.2 * (0.7 * common + 0.7 * rng.normal()) * (0.7 + 0.4 * (seed % 3)))
        told = corrected_by(past[: max(0, number - 12)][-200:]).applied(raw).ends
        past.append(ForecastOutcome(raw, 50.0, ended, told if counted else {}))
        for name, by in told.items():
            kept[name].append(ended <= by)
    return {name: float(np.mean(found[70:])) for name, found in kept.items()}


def test_promises_to_jobs_that_are_late_together_are_kept_as_often_as_told() -> None:
    """Widths fitted to the last 200 alone leave the five points in every second queue."""

    def off(counted: bool) -> int:
        found = [shares_kept(seed, counted=counted) for seed in range(12)]
        return sum(max(abs(one[name] - level) for name, level in LEVELS.items()) > 0.05 for one in found)

    assert off(True) <= 1
    assert off(False) >= 4

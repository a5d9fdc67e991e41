"""`python -m easel.flow.replay_apart`: a replay from standard input to standard output, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from easel.errors import EaselError
from easel.flow.pool_sizes import HOURS_A_MONTH, PoolPast
from easel.flow.simulate import Past, PolicyOutcome, Simulated
from easel.run.pool_sizes import PoolSize, larger, waits
from easel.schedule.replay import ReplaySettings, replay
from easel.schedule.table import ScoreTable

REPETITIONS = 5


def table_of(past: Sequence[Past]) -> ScoreTable:
    """Returns the trials as a table; of repeated ones the last counts."""
    tenants = tuple(dict.fromkeys(row.tenant for row in past))
    candidates = tuple(dict.fromkeys(row.candidate for row in past))
    quality = np.full((len(tenants), len(candidates)), np.nan)
    cost = quality.copy()
    for row in past:
        i, k = tenants.index(row.tenant), candidates.index(row.candidate)
        quality[i, k] = np.nan if row.quality is None else row.quality
        cost[i, k] = row.cost
    return ScoreTable(tenants, candidates, quality, cost)


def answer(asked: dict[str, Any]) -> Simulated:
    past = [Past(*row) for row in asked["past"]]
    raw = asked["plan"]
    plan = ReplaySettings(**{**raw, "policies": tuple(raw["policies"]), "devices": tuple(raw["devices"])})
    table = table_of(past)
    found = replay(table, plan)
    return Simulated(
        tenants=len(table.tenants),
        candidates=len(table.candidates),
        trials=len(past),
        horizon=found[0].horizon,
        runs=[
            PolicyOutcome(r.policy, r.devices, r.curve.time.tolist(), r.curve.loss.tolist(), r.area)
            for r in found
        ],
    )


def pool_sizes(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what each size of the pool would have meant for those who waited, and for everybody's best model."""
    raw: dict[str, Any] = asked["past"]
    past = TypeAdapter(PoolPast).validate_python(raw)
    best = times_to_best(past.trials, [past.units + more for more in asked["sizes"]])
    found = []
    for more, to_best in zip(asked["sizes"], best, strict=True):
        waiting = waits(past.jobs, larger(past.devices, past.unit, more))
        found.append(PoolSize(more, waiting, to_best, more * past.per_hour * HOURS_A_MONTH))
    return [asdict(size) for size in found]


def times_to_best(trials: Sequence[Past], units: Sequence[int]) -> list[float | None]:
    """Returns when the mean loss is as low as the first pool ever gets it, for each pool; None without two apps."""
    known = [row for row in trials if row.quality is not None and row.cost > 0]
    if len({row.tenant for row in known}) < 2:
        return [None] * len(units)
    plan = ReplaySettings(devices=tuple(dict.fromkeys(units)), repetitions=REPETITIONS, share=1.0)
    curves = {run.devices: run.curve for run in replay(table_of(known), plan) if run.policy == "easel"}
    least = float(curves[units[0]].loss.min())
    return [_finite(curves[count].reaches(least)) for count in units]


def _finite(seconds: float) -> float | None:
    return seconds if np.isfinite(seconds) else None


def main() -> None:
    try:
        asked = json.load(sys.stdin)
        json.dump(pool_sizes(asked) if "sizes" in asked else asdict(answer(asked)), sys.stdout)
    except EaselError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

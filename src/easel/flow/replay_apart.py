"""`python -m easel.flow.replay_apart`: a replay from standard input to standard output, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from easel.errors import EaselError
from easel.flow.simulate import Past, PolicyOutcome, Simulated
from easel.schedule.replay import ReplaySettings, replay
from easel.schedule.table import ScoreTable


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


def main() -> None:
    try:
        json.dump(asdict(answer(json.load(sys.stdin))), sys.stdout)
    except EaselError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

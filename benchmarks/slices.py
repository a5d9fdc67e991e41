"""Slices of trials for many tenants, on published learning curves, beside whole trials and successive halving.

`python benchmarks/slices.py [--repetitions 20] [--policies slices,remaining,...] [--write]`: 8 tenants drawn at random,
the others as history, 8 devices; the area under the mean regret until 2 % and 10 % of the cost of everything is spent.
One run gives both horizons, since no policy knows them. Reads `lcbench/` in the data folder.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.slices_references import TurnsOfHalving, remaining_gains
from easel.optimise.arrays import Array
from easel.records.decision import Decision
from easel.schedule.curve_belief import CurveBelief, learn_curves
from easel.schedule.curves import CurveTable
from easel.schedule.policies import Easel, Policy
from easel.schedule.simulate import World, curve_tenants, simulate
from easel.schedule.state import PoolDevice, PoolState, Tenant

DATA = Path(os.environ.get("EASEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
RUNGS = (1, 2, 3, 5, 8, 13, 21, 34, 52)
SERVED, DEVICES = 8, 8
HORIZONS = (0.02, 0.10)
WANTED = {0.02: 0.045, 0.10: 0.014}
LOGARITHMIC = ("batch_size", "learning_rate", "max_units")


def read_curves(folder: Path) -> tuple[CurveTable, Array]:
    """Curves at `RUNGS` and the configurations' features, learning rate and sizes as logarithms."""
    table = pq.read_table(folder / "curves.parquet")
    task, config = np.array(table["task"].to_pylist()), table["config"].to_numpy()
    names, row = np.unique(task, return_inverse=True)
    epoch = table["epoch"].to_numpy()
    shape = (len(names), int(config.max()) + 1, int(epoch.max()))
    quality, seconds = np.full(shape, np.nan), np.full(shape, np.nan)
    quality[row, config, epoch - 1] = table["val_accuracy"].to_numpy()
    seconds[row, config, epoch - 1] = table["time_s"].to_numpy()
    # a predicted time falls here and there: time does not
    seconds = np.maximum.accumulate(seconds, axis=2)
    at = [r - 1 for r in RUNGS]
    with (folder / "configurations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name != "config"]
    features = np.array([[float(r[name]) for name in columns] for r in rows])
    for j, name in enumerate(columns):
        if name in LOGARITHMIC:
            features[:, j] = np.log(features[:, j])
    candidates = tuple(f"c{r['config']}" for r in rows)
    curves = CurveTable(
        tuple(names), candidates, np.array(RUNGS, float), quality[:, :, at], seconds[:, :, at]
    )
    return curves, features


@dataclass
class Timed:
    """A policy whose decisions are timed, in processor seconds."""

    policy: Policy
    seconds: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.policy.name

    def decide(self, state: PoolState) -> Decision:
        began = time.process_time()
        decision = self.policy.decide(state)
        self.seconds.append(time.process_time() - began)
        return decision


Case = Callable[[CurveTable, CurveTable, Array, int], tuple[World, Policy, list[Tenant]]]


def _devices() -> list[PoolDevice]:
    return [PoolDevice(f"d{i}") for i in range(DEVICES)]


def slices(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    world = World.of_curves(served, _devices())
    return world, Easel(), curve_tenants(world, learn_curves(history, features))


def without_features(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    world = World.of_curves(served, _devices())
    return world, Easel(), curve_tenants(world, learn_curves(history))


def whole(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    """Trials run to their end: the same model with one rung."""
    last = len(RUNGS) - 1
    world = World.of_curves(served.at_rungs([last]), _devices())
    return world, Easel(name="whole"), curve_tenants(world, learn_curves(history.at_rungs([last])))


def remaining(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    world = World.of_curves(served, _devices())
    return world, Easel(), _with_belief(world, remaining_gains(history))


def _with_belief(world: World, belief: CurveBelief) -> list[Tenant]:
    cost = belief.costs()[:, -1]
    return [Tenant(name, world.table.candidates, belief, cost, ceiling=1.0) for name in world.table.tenants]


def asha(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    rng = np.random.default_rng([7, seed])
    K = len(served.candidates)
    order = tuple(tuple(int(k) for k in rng.permutation(K)) for _ in served.tenants)
    return _halving(served, history, "asha", order)


def asha_ordered(
    served: CurveTable, history: CurveTable, features: Array, seed: int
) -> tuple[World, Policy, list[Tenant]]:
    by_mean = np.argsort(-history.quality[:, :, -1].mean(0), kind="stable")
    return _halving(served, history, "asha in learned order", (tuple(int(k) for k in by_mean),))


def _halving(
    served: CurveTable, history: CurveTable, name: str, order: tuple[tuple[int, ...], ...]
) -> tuple[World, Policy, list[Tenant]]:
    world = World.of_curves(served, _devices())
    policy = TurnsOfHalving(name, (0, 2, 4, 6, 8), order)
    return world, policy, _with_belief(world, remaining_gains(history))


CASES: dict[str, Case] = {
    "slices": slices,
    "slices without features": without_features,
    "remaining gains": remaining,
    "whole trials": whole,
    "asha in turn": asha,
    "asha in learned order": asha_ordered,
}


@dataclass
class CaseResult:
    areas: dict[float, list[float]] = field(default_factory=lambda: {h: [] for h in HORIZONS})
    decision_ms: list[float] = field(default_factory=list)
    learn_s: list[float] = field(default_factory=list)
    slices: list[int] = field(default_factory=list)


def measure(curves: CurveTable, features: Array, case: Case, repetitions: range, seed: int) -> CaseResult:
    """Repetition r draws the same tenants for every case."""
    found = CaseResult()
    for r in repetitions:
        order = np.random.default_rng([seed, r]).permutation(len(curves.tenants))
        served, history = curves.rows(order[:SERVED]), curves.rows(order[SERVED:])
        began = time.process_time()
        world, policy, members = case(served, history, features, r)
        found.learn_s.append(time.process_time() - began)
        timed = Timed(policy)
        longest = max(HORIZONS) * served.total_cost / DEVICES
        run = simulate(world, timed, members, longest, np.random.default_rng([seed, r]))
        gap = float((served.best - world.best).mean())
        for h in HORIZONS:
            # regret counts against the best cell of all rungs, whichever rungs the case may use
            found.areas[h].append(run.curve.area(h * served.total_cost / DEVICES) + gap)
        found.decision_ms.append(1e3 * float(np.mean(timed.seconds)))
        found.slices.append(len(run.steps))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policies", default=",".join(CASES))
    parser.add_argument("--data", type=Path, default=DATA / "lcbench")
    asked = parser.parse_args()
    if not (asked.data / "curves.parquet").is_file():
        sys.exit(f"skipped: no curves.parquet in {asked.data}; set EASEL_DATA to the folder of the data")
    curves, features = read_curves(asked.data)
    base: CaseResult | None = None
    for name in asked.policies.split(","):
        found = measure(
            curves, features, CASES[name], range(asked.first, asked.first + asked.repetitions), asked.seed
        )
        base = base or found
        print(json.dumps(summary(name, found, base)), flush=True)


def summary(name: str, found: CaseResult, base: CaseResult) -> dict[str, object]:
    """Means with the spread over repetitions; differences are paired with the first case."""
    row: dict[str, object] = {"policy": name}
    for h in HORIZONS:
        areas = np.array(found.areas[h])
        apart = areas - np.array(base.areas[h])
        n = max(len(areas), 2)
        row[f"area at {h:.0%}"] = round(float(areas.mean()), 5)
        row[f"± at {h:.0%}"] = round(float(areas.std(ddof=1) / np.sqrt(n)), 5) if len(areas) > 1 else None
        row[f"range at {h:.0%}"] = [round(float(areas.min()), 4), round(float(areas.max()), 4)]
        row[f"wanted at {h:.0%}"] = WANTED[h]
        if found is not base and len(areas) > 1:
            row[f"over the first at {h:.0%}"] = round(float(apart.mean()), 5)
            row[f"paired ± at {h:.0%}"] = round(float(apart.std(ddof=1) / np.sqrt(n)), 5)
    row["ms per decision"] = round(float(np.mean(found.decision_ms)), 2)
    row["s to learn the prior"] = round(float(np.mean(found.learn_s)), 2)
    row["slices per run"] = round(float(np.mean(found.slices)))
    return row


if __name__ == "__main__":
    main()

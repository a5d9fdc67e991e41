"""What is lost by a scheduler that takes all devices for alike: pools of a fast and slow machines, of GPUs and cores.

    EASEL_DATA=DATA python -m benchmarks.devices [--repetitions 10] [--json PATH]

Learning curves as in `benchmarks.slices`: 8 tenants drawn at random, the other 9 as history. One pool has two machines that are
four times as fast as the other six; another two GPUs, on which a network takes between a tenth of the time (the widest
third) and one and a half times as long (the narrowest), beside six cores. The area under the mean regret until 10 % of the cost of everything is
spent on the reference device, told what devices are like and not told.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.slices import DATA, SERVED, read_curves
from easel.optimise.arrays import Array
from easel.records.decision import Decision
from easel.schedule.bound import least_loss
from easel.schedule.curve_belief import learn_curves
from easel.schedule.curves import CurveTable
from easel.schedule.policies import Easel, Policy
from easel.schedule.simulate import World, curve_tenants, simulate
from easel.schedule.state import PoolDevice, PoolState

GPU, HORIZON = "gpu", 0.10
WIDTH, LAYERS = "max_units", "num_layers"


@dataclass
class AllAlike:
    """The policy as it would be if it knew nothing of devices."""

    policy: Policy

    @property
    def name(self) -> str:
        return self.policy.name

    def decide(self, state: PoolState) -> Decision:
        return self.policy.decide(replace(state, device=PoolDevice(state.device.name)))


def on_gpus(features: Array, widths: int) -> Array:
    """`(K,)`: seconds on a GPU for one on a core, by thirds of the width."""
    low, high = np.quantile(features[:, widths], [1 / 3, 2 / 3])
    return np.where(features[:, widths] >= high, 0.1, np.where(features[:, widths] >= low, 0.4, 1.5))


def pools(faster: Array) -> Mapping[str, tuple[list[PoolDevice], dict[str, Array]]]:
    cores = [PoolDevice(f"core{k}") for k in range(6)]
    return {
        "two fast, six slow": ([*(PoolDevice(f"fast{k}", speed=4.0) for k in range(2)), *cores], {}),
        "two GPUs, six cores": (
            [*(PoolDevice(f"gpu{k}", kind=GPU) for k in range(2)), *cores],
            {GPU: faster},
        ),
    }


def areas(curves: CurveTable, features: Array, faster: Array, seed: int) -> dict[str, dict[str, float]]:
    """The mean regret over the horizon, on each pool."""
    order = np.random.default_rng(seed).permutation(len(curves.tenants))
    served, history = curves.rows(order[:SERVED].tolist()), curves.rows(order[SERVED:].tolist())
    prior = learn_curves(history, features)
    found: dict[str, dict[str, float]] = {}
    for name, (devices, seconds_on) in pools(faster).items():
        world = World.of_curves(served, devices, seconds_on=seconds_on)
        horizon = HORIZON * served.total_cost / sum(world.speed(device) for device in devices)
        told = curve_tenants(world, prior)
        plain = [replace(one, cost_on={}) for one in told]
        rng = np.random.default_rng(0)
        runs = {
            "told": simulate(world, Easel(), told, horizon, rng).curve,
            "not told": simulate(world, AllAlike(Easel()), plain, horizon, rng).curve,
            "no schedule is below": least_loss(world, horizon),
        }
        found[name] = {how: curve.area(horizon) for how, curve in runs.items()}
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--repetitions", type=int, default=10)
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    if not (DATA / "lcbench").is_dir():
        sys.exit("SKIPPED: lcbench is not here; set EASEL_DATA")
    curves, features = read_curves(DATA / "lcbench")
    with (DATA / "lcbench" / "configurations.csv").open() as file:
        columns = [name for name in file.readline().strip().split(",") if name != "config"]
    faster = on_gpus(features, columns.index(WIDTH))
    runs = [areas(curves, features, faster, seed) for seed in range(options.repetitions)]
    told: dict[str, dict[str, str]] = {}
    for pool in runs[0]:
        told[pool] = {}
        for how in runs[0][pool]:
            values = np.array([one[pool][how] for one in runs])
            told[pool][how] = f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"
        ratio = np.array([one[pool]["told"] / one[pool]["not told"] for one in runs])
        told[pool]["told over not told"] = (
            f"{ratio.mean():.2f} ± {ratio.std(ddof=1) / np.sqrt(len(ratio)):.2f}"
        )
    print(json.dumps(told, indent=1))
    if options.json:
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

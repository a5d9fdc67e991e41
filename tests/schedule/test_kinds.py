"""Pools of different devices, simulated: a fast one and a slow one, a GPU and cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.test_slices import FEATURES, HISTORY, SERVED

from easel.optimise.arrays import Array
from easel.schedule.bound import least_loss
from easel.schedule.curve_belief import learn_curves
from easel.schedule.policies import Easel
from easel.schedule.simulate import Run, World, curve_tenants, simulate
from easel.schedule.state import PoolDevice

HORIZON = 0.05 * SERVED.total_cost
NETWORKS = np.arange(len(SERVED.candidates)) % 2 == 0
GPU, BESIDE = "gpu", "beside gpu"
KINDS = {GPU: np.where(NETWORKS, 0.1, 2.0), BESIDE: np.ones(len(NETWORKS))}


def run(*devices: PoolDevice, seconds_on: dict[str, Array] | None = None, told: bool = True) -> Run:
    """`told`: the policy knows what candidates take on each kind of device."""
    world = World.of_curves(SERVED, devices, seconds_on=seconds_on or {})
    members = curve_tenants(world, learn_curves(HISTORY, FEATURES))
    if not told:
        members = [replace(one, cost_on={}) for one in members]
    return simulate(world, Easel(), members, HORIZON, np.random.default_rng(0))


def seconds(found: Run, device: str) -> Sequence[float]:
    return [step.ended - step.began for step in found.steps if step.trial.device == device]


def networks_on(found: Run, device: str) -> float:
    there = [step.trial.index for step in found.steps if step.trial.device == device]
    return float(NETWORKS[there].mean())


def test_a_fast_and_a_slow_device_are_better_than_two_slow_and_worse_than_two_fast_ones() -> None:
    fast, slow = PoolDevice("fast", speed=4.0), PoolDevice("slow")
    mixed = run(fast, slow)
    areas = [
        one.curve.area(HORIZON)
        for one in (run(fast, replace(fast, name="f2")), mixed, run(slow, replace(slow, name="s2")))
    ]
    assert areas == sorted(areas)
    assert areas[0] < areas[2]
    assert len(seconds(mixed, "fast")) > 2 * len(seconds(mixed, "slow")), (
        "it ends more slices in the same time"
    )


def test_what_a_gpu_makes_faster_runs_there_and_takes_the_time_that_it_takes_there() -> None:
    gpu, core = PoolDevice("gpu", kind=GPU), PoolDevice("core", kind=BESIDE)
    found = run(gpu, core, seconds_on=KINDS)
    assert networks_on(found, "gpu") > networks_on(found, "core") + 0.2
    for step in found.steps:
        part, i = step.trial.slice, SERVED.tenants.index(step.trial.tenant)
        assert part is not None
        cells = SERVED.cost[i, step.trial.index]
        whole = cells[part.rung] - (cells[part.rung - 1] if part.rung else 0.0)
        there = KINDS[GPU if step.trial.device == "gpu" else BESIDE][step.trial.index]
        assert step.ended - step.began == pytest.approx(whole * there)


def test_what_is_not_run_on_a_kind_of_device_never_is() -> None:
    apart = {GPU: np.where(NETWORKS, 0.1, np.inf), BESIDE: np.where(NETWORKS, np.inf, 1.0)}
    found = run(PoolDevice("gpu", kind=GPU), PoolDevice("core", kind=BESIDE), seconds_on=apart)
    assert networks_on(found, "gpu") == 1.0
    assert networks_on(found, "core") == 0.0


def test_who_takes_all_devices_for_alike_is_left_with_more_regret() -> None:
    pool = [PoolDevice("gpu", kind=GPU), *(PoolDevice(f"core{k}", kind=BESIDE) for k in range(2))]
    told, untold = (run(*pool, seconds_on=KINDS, told=one).curve.area(HORIZON) for one in (True, False))
    assert told < untold


def test_no_policy_falls_below_the_bound_on_a_pool_of_several_kinds() -> None:
    pool = (PoolDevice("gpu", kind=GPU), PoolDevice("core", kind=BESIDE))
    bound = least_loss(World.of_curves(SERVED, pool, seconds_on=KINDS), HORIZON)
    moments = np.linspace(0.0, HORIZON, 100)
    assert (bound.at(moments) <= run(*pool, seconds_on=KINDS).curve.at(moments) + 1e-9).all()

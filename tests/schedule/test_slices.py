from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.records.decision import LeaveIdle, StartTrial
from easel.schedule.bound import least_loss
from easel.schedule.cells import ColdCells, learn_cells
from easel.schedule.curve_belief import CurveBelief, learn_curves, unwarped, warped
from easel.schedule.curves import CurveTable
from easel.schedule.policies import Easel, Policy
from easel.schedule.policies.slices import curve_gain
from easel.schedule.simulate import Run, World, curve_tenants, simulate
from easel.schedule.state import PoolDevice, PoolState

RUNGS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def a_world(n: int, K: int, seed: int = 0) -> tuple[CurveTable, Array]:
    """Curves that climb to a final quality that depends on two features and on the tenant."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(K, 2))
    level = rng.normal(1.0, 0.15, size=(n, 1, 1))
    slope = rng.normal(0.4, 0.15, size=(n, 1, 1))
    final = level + slope * (x[:, 0] - 0.5)[None, :, None] + 0.05 * rng.standard_normal((n, K, 1))
    climb = 0.5 * (1.0 + x[:, 1])[None, :, None] * (1.0 - (RUNGS / RUNGS[-1]) ** 0.4)
    noise = 0.01 * rng.standard_normal((n, K, len(RUNGS)))
    quality = unwarped(np.clip(final - climb + noise, 0.05, 1.5))
    size = np.exp(rng.normal(0.0, 0.6, size=(n, 1, 1)))
    cost = size * (0.5 + x[:, 1])[None, :, None] * RUNGS
    names = tuple(f"t{i}" for i in range(n))
    return CurveTable(names, tuple(f"c{k}" for k in range(K)), RUNGS, quality, cost), x


CURVES, FEATURES = a_world(14, 20)
SERVED, HISTORY = CURVES.rows(range(4)), CURVES.rows(range(4, 14))


def run(
    policy: Policy | None = None, devices: int = 2, features: Array | None = FEATURES, **more: object
) -> Run:
    world = World.of_curves(SERVED, [PoolDevice(f"d{i}") for i in range(devices)], **more)
    members = curve_tenants(world, learn_curves(HISTORY, features))
    horizon = 0.2 * SERVED.total_cost / devices
    return simulate(world, policy or Easel(), members, horizon, np.random.default_rng(0))


def area(of: Run, devices: int = 2) -> float:
    return of.curve.area(0.2 * SERVED.total_cost / devices)


def test_a_trial_climbs_one_rung_at_a_time_and_pays_only_for_the_rest() -> None:
    found = run()
    reached: dict[tuple[str, str], int] = {}
    for step in sorted(found.steps, key=lambda s: s.began):
        part = step.trial.slice
        assert part is not None
        key = (step.trial.tenant, step.trial.candidate)
        assert part.rung == reached.get(key, -1) + 1
        i, k = SERVED.tenants.index(key[0]), step.trial.index
        paid = SERVED.cost[i, k, part.rung] - (SERVED.cost[i, k, part.rung - 1] if part.rung else 0.0)
        assert step.ended - step.began == pytest.approx(paid)
        reached[key] = part.rung
    assert max(reached.values()) == len(RUNGS) - 1


def test_slices_leave_less_regret_than_whole_trials() -> None:
    last = len(RUNGS) - 1
    world = World.of_curves(SERVED.at_rungs([last]), [PoolDevice("d0"), PoolDevice("d1")])
    members = curve_tenants(world, learn_curves(HISTORY.at_rungs([last]), FEATURES))
    whole = simulate(world, Easel(), members, 0.1 * SERVED.total_cost, np.random.default_rng(0))
    assert area(run()) < 0.7 * area(whole)


def test_no_policy_falls_below_the_bound() -> None:
    world = World.of_curves(SERVED, [PoolDevice("d0"), PoolDevice("d1")])
    horizon = 0.1 * SERVED.total_cost
    bound = least_loss(world, horizon)
    found = run().curve
    moments = np.linspace(0.0, horizon, 333)
    assert (bound.at(moments) <= found.at(moments) + 1e-9).all()
    assert 0.0 < bound.area(horizon) < area(run())


def test_the_bound_is_met_where_one_tenant_has_one_candidate() -> None:
    curves = CurveTable(("t",), ("c",), np.array([1.0]), np.array([[[0.8]]]), np.array([[[5.0]]]))
    bound = least_loss(World.of_curves(curves, [PoolDevice("d")]), 10.0, points=10)
    np.testing.assert_allclose(bound.loss, [0.8] * 4 + [0.0] * 6)


def test_a_slice_that_fails_closes_its_candidate_and_no_other() -> None:
    found = run(failures=0.3)
    failed = [s for s in found.steps if np.isnan(s.quality)]
    assert failed
    for bad in failed:
        key = (bad.trial.tenant, bad.trial.candidate)
        later = [
            s for s in found.steps if (s.trial.tenant, s.trial.candidate) == key and s.began >= bad.ended
        ]
        assert not later


def test_seeing_the_first_rung_narrows_the_end_of_that_curve_and_of_similar_ones() -> None:
    before = learn_curves(HISTORY, FEATURES).belief()
    after = before.reached(3, 1, float(SERVED.quality[0, 3, 1]), 2.0)
    assert after.sd[3] < 0.8 * before.sd[3]
    assert (after.sd <= before.sd + 1e-9).mean() > 0.9
    assert after.progress[3] == 1
    assert after.spent[3] == 2.0


def test_extrapolated_ends_cover_the_truth_as_often_as_they_say() -> None:
    prior = learn_curves(HISTORY, FEATURES)
    inside: list[bool] = []
    for i in range(len(SERVED.tenants)):
        belief = prior.belief()
        for k in range(0, 20, 2):
            belief = belief.reached(k, 2, float(SERVED.quality[i, k, 2]), float(SERVED.cost[i, k, 2]))
        m, s = belief.cells()
        z = (warped(SERVED.quality[i, :, -1]) - m[:, -1]) / s[:, -1]
        inside.extend(np.abs(z) < 1.645)
    assert 0.75 < np.mean(inside) <= 1.0


def test_the_cost_of_one_candidate_tells_of_the_tenants_others() -> None:
    before = learn_curves(HISTORY, FEATURES).belief()
    dear = before.reached(0, 0, 0.5, 5.0 * float(before.costs()[0, 0]))
    assert (dear.costs()[:, -1] > 1.5 * before.costs()[:, -1]).mean() > 0.9
    assert np.isinf(dear.costs_ahead()[0, 0])
    assert (dear.costs_ahead()[0, 1:] > 0).all()


def test_without_history_or_features_everything_still_runs() -> None:
    empty = CURVES.rows([])
    world = World.of_curves(SERVED, [PoolDevice("d0")])
    members = curve_tenants(world, learn_curves(empty))
    found = simulate(world, Easel(), members, 0.1 * SERVED.total_cost, np.random.default_rng(0))
    assert {s.trial.tenant for s in found.steps} == set(SERVED.tenants)


def test_history_with_gaps_says_more_than_none_and_does_not_flatter_the_untried() -> None:
    lived = HISTORY.quality.copy()
    tried = lived[:, :, -1].mean(0) > np.median(lived[:, :, -1].mean(0))
    lived[:, ~tried, 1:] = np.nan
    partial = CurveTable(HISTORY.tenants, HISTORY.candidates, RUNGS, lived, HISTORY.cost)
    mean = learn_curves(partial, FEATURES).belief().mean
    assert mean[tried].mean() > mean[~tried].mean()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_thin_history_gives_a_usable_prior(rows: int) -> None:
    belief = learn_curves(HISTORY.rows(range(rows)), FEATURES).belief()
    assert np.isfinite(belief.mean).all()
    assert (belief.sd > 0).all()


def test_a_budget_is_kept_slice_by_slice() -> None:
    world = World.of_curves(SERVED, [PoolDevice("d0")])
    rich = curve_tenants(world, learn_curves(HISTORY, FEATURES))
    poor = [replace(t, budget=0.02 * SERVED.total_cost) for t in rich]
    found = simulate(world, Easel(), poor, SERVED.total_cost, np.random.default_rng(0))
    for name in SERVED.tenants:
        assert sum(s.bill for s in found.steps if s.trial.tenant == name) <= 0.02 * SERVED.total_cost * 1.001


def test_a_device_of_another_speed_is_predicted_and_learned_from() -> None:
    belief = learn_curves(HISTORY, FEATURES).belief()
    tenant = curve_tenants(World.of_curves(SERVED, [PoolDevice("d")]), learn_curves(HISTORY, FEATURES))[0]
    slow = PoolState({tenant.name: tenant}, PoolDevice("slow", speed=0.5))
    decision = Easel().decide(slow)
    assert isinstance(decision, StartTrial)
    assert decision.slice is not None
    k, rung = decision.index, decision.slice.rung
    assert decision.reasons.cost == pytest.approx(2.0 * float(belief.costs()[k, rung]))
    after = slow.started(decision).finished(decision, 0.6, decision.reasons.cost).tenant(tenant.name).belief
    assert isinstance(after, CurveBelief)
    assert after.spent[k] == pytest.approx(float(belief.costs()[k, rung]))


def test_nothing_left_to_run_leaves_the_device_idle() -> None:
    small, x = a_world(6, 2, seed=3)
    world = World.of_curves(small.rows([0]), [PoolDevice("d")])
    members = curve_tenants(world, learn_curves(small.rows(range(1, 6)), x))
    found = simulate(world, Easel(), members, 1e9, np.random.default_rng(0))
    assert len(found.steps) == 2 * len(RUNGS)
    tenant = replace(members[0], taken=np.ones(2, dtype=bool))
    assert isinstance(Easel().decide(PoolState({"t0": tenant}, PoolDevice("d"))), LeaveIdle)


def test_the_gain_is_in_raw_quality_and_never_above_what_is_left() -> None:
    rng = np.random.default_rng(0)
    draws = unwarped(rng.normal(1.2, 0.2, size=200_000))
    found = float(curve_gain(np.array([1.2]), np.array([0.2]), 0.8)[0])
    assert found == pytest.approx(float(np.clip(draws - 0.8, 0, None).mean()), rel=0.1)
    assert float(curve_gain(np.array([3.0]), np.array([1.0]), 0.99)[0]) <= 0.01 + 1e-12


def test_learned_cells_give_held_out_rows_a_higher_likelihood_than_assumed_ones() -> None:
    rows = warped(CURVES.quality)
    E = len(RUNGS)
    cold = ColdCells(np.full((20, E), 1.0), np.full((E, E), 0.04), 0.01 * np.eye(E), 1e-4)
    learned, assumed = learn_cells(rows[4:], cold, FEATURES), learn_cells(rows[:0], cold, FEATURES)
    from easel.schedule.cells import _likelihood

    assert _likelihood(rows[:4], learned) > _likelihood(rows[:4], assumed)


def test_falling_costs_and_rungs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot fall"):
        CurveTable(("t",), ("c",), np.array([1.0, 2.0]), np.zeros((1, 1, 2)), np.array([[[2.0, 1.0]]]))
    with pytest.raises(InvalidInput, match="rise"):
        CurveTable(("t",), ("c",), np.array([2.0, 1.0]), np.zeros((1, 1, 2)), np.ones((1, 1, 2)))

"""Every policy, on ordinary pools and on odd ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from easel.errors import InvalidInput, NotFound
from easel.records.decision import LeaveIdle
from easel.schedule.policies import POLICIES, Easel, Policy, named
from easel.schedule.prior import weak
from easel.schedule.related import related_beliefs
from easel.schedule.simulate import World, simulate, tenants
from easel.schedule.state import Look, PoolDevice
from easel.schedule.table import ScoreTable
from easel.testing.policy import DEVICE, PolicySuite, pool, started, tenant


def _suite(name: str) -> type[PolicySuite]:
    class Kept(PolicySuite):
        def make(self) -> Policy:
            return named(name)

    return Kept


globals().update({f"Test_{name.replace('-', '_')}": _suite(name) for name in POLICIES})


def table(Q: np.ndarray, C: np.ndarray | None = None) -> ScoreTable:
    n, K = Q.shape
    cost = np.ones_like(Q) if C is None else C
    return ScoreTable(tuple(f"t{i}" for i in range(n)), tuple(f"m{k}" for k in range(K)), Q, cost)


def test_a_repeated_result_counts_once() -> None:
    state = pool(tenant())
    decision = started(Easel(), state)
    once = state.started(decision).finished(decision, 0.9, 1.0)
    assert once.finished(decision, 0.9, 1.0) is once
    assert once.tenants["a"].spent == 1.0


def test_feeding_new_data_opens_everything_but_what_runs() -> None:
    state = pool(tenant())
    first = started(Easel(), state)
    state = state.started(first).finished(first, 0.9, 1.0)
    second = started(Easel(), state)
    fed = state.started(second).fed("a", weak(3).belief())
    assert fed.tenants["a"].open.sum() == 2
    assert fed.tenants["a"].best == 0.9
    with pytest.raises(NotFound):
        fed.fed("nobody", weak(3).belief())


def test_an_unknown_policy_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidInput, match="round-robin"):
        named("lifo")


# --- what only the default does


def test_weight_decides_between_equals() -> None:
    assert started(Easel(), pool(tenant("a"), tenant("b", weight=3.0))).tenant == "b"


def test_a_trial_that_cannot_end_before_the_deadline_is_not_started() -> None:
    late = tenant("late", deadline=10.0, cost=np.array([20.0, 5.0, 30.0]))
    assert started(Easel(), pool(late)).index == 1
    assert isinstance(Easel().decide(pool(late).on(DEVICE, 6.0)), LeaveIdle)


def test_a_near_deadline_goes_before_an_equal_without() -> None:
    assert started(Easel(), pool(tenant("a"), tenant("b", deadline=2.5))).tenant == "b"


def test_a_faster_device_makes_the_late_trial_possible() -> None:
    late = tenant("late", deadline=10.0, cost=np.full(3, 20.0))
    assert isinstance(Easel().decide(pool(late)), LeaveIdle)
    assert started(Easel(), pool(late, device=PoolDevice("fast", speed=4.0))).reasons.cost == 5.0


def test_costs_known_for_a_kind_of_device_are_used_there() -> None:
    one = tenant("a", cost_on={"gpu": np.array([9.0, 9.0, 0.1])})
    assert started(Easel(), pool(one)).index == 0
    assert started(Easel(), pool(one, device=PoolDevice("g", kind="gpu"))).index == 2


def test_a_tenant_with_a_trial_running_is_less_urgent_than_one_without() -> None:
    state = pool(tenant("a"), tenant("b", cost=np.full(3, 1.05)))
    first = started(Easel(), state)
    assert first.tenant == "a"
    assert started(Easel(), state.started(first)).tenant == "b"


def test_no_gain_is_hoped_for_above_the_ceiling() -> None:
    perfect = tenant("perfect", best=1.0, ceiling=1.0)
    poor = tenant("poor", best=0.3, ceiling=1.0, cost=np.full(3, 100.0))
    assert started(Easel(), pool(perfect, poor)).tenant == "poor"


def test_a_cheap_look_is_taken_where_the_full_trial_is_dear_and_leaves_it_open() -> None:
    look = Look(fraction=0.1, cost=0.01, noise=1e-4)
    state = pool(tenant("a", looks=(look,), best=0.5))
    first = started(Easel(), state)
    assert first.fraction == 0.1
    assert first.reasons.cost == pytest.approx(0.01 * state.tenants["a"].cost[first.index])
    after = state.started(first).finished(first, 0.7, 0.01)
    assert after.tenants["a"].open.all()
    assert after.tenants["a"].belief.sd[first.index] < state.tenants["a"].belief.sd[first.index]


def test_a_useless_look_is_not_taken() -> None:
    state = pool(tenant("a", looks=(Look(fraction=0.5, cost=0.9, noise=10.0),)))
    assert started(Easel(), state).fraction == 1.0


def test_the_results_of_kin_move_the_belief() -> None:
    prior = weak(3)
    alike = related_beliefs(prior, np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    state = pool(*(tenant(name, belief=b) for name, b in zip("abc", alike, strict=True)))
    first = started(Easel(), state)
    assert first.tenant == "a"
    after = state.started(first).finished(first, 0.95, 1.0)
    moved = {n: float(t.belief.mean[first.index] - prior.mean[first.index]) for n, t in after.tenants.items()}
    assert moved["a"] > moved["b"] > 0.2
    assert moved["c"] == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    N=st.integers(1, 5),
    devices=st.integers(1, 3),
    budget=st.floats(0.5, 6.0),
    noise=st.sampled_from([0.0, 0.5, 1.5]),
)
def test_budgets_are_never_exceeded_whatever_trials_really_cost(
    seed: int, N: int, devices: int, budget: float, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    world = World(
        table(rng.uniform(size=(N, 6)), rng.uniform(0.1, 2.0, size=(N, 6))),
        tuple(PoolDevice(f"d{i}", speed=1.0 + i, price=1.0 + 0.5 * i) for i in range(devices)),
        failures=0.2,
        cost_noise=noise,
    )
    members = [t.changed(budget=budget) for t in tenants(world, weak(6))]
    run = simulate(world, Easel(), members, 1e9, rng)
    for t in world.table.tenants:
        assert sum(s.bill for s in run.steps if s.trial.tenant == t) <= budget + 1e-9


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), N=st.integers(2, 5), share=st.sampled_from([0.25, 0.5]))
def test_nobody_starves_even_if_the_scores_say_so(seed: int, N: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    K = 40
    world = World(table(rng.uniform(size=(N, K)), rng.uniform(0.5, 1.0, size=(N, K))))
    # the last tenant looks hopeless and has almost no weight
    members = tenants(world, weak(K))
    members[-1] = members[-1].changed(weight=1e-12)
    run = simulate(world, Easel(share=share, patience=0.0), members, 1e9, rng)
    served = [n for n, s in enumerate(run.steps) if s.trial.tenant == members[-1].name]
    gaps = np.diff([-1, *served])
    assert gaps.max() <= N / share + N

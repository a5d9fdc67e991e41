"""The numbers and words of the policies' rules, on cases small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from easel.optimise.acquire import expected_improvement, ucb_beta
from easel.records.decision import LeaveIdle, StartTrial
from easel.schedule.curve_belief import CurveBelief, learn_curves
from easel.schedule.curves import CurveTable
from easel.schedule.policies import Easel, named
from easel.schedule.policies.board import BestCandidate
from easel.schedule.policies.compose import start
from easel.schedule.policies.default import urgency
from easel.schedule.policies.gain import LEAST, expected_gain, gain_below, look_rates, pending
from easel.schedule.policies.rank import Hybrid, RoundRobin
from easel.schedule.policies.score import EIRate, FixedOrder, TrueGain, UpperBound, mean_cost
from easel.schedule.policies.slices import best_slice, curve_gain, device_scale
from easel.schedule.prior import Prior
from easel.schedule.state import Look, PoolDevice, Tenant
from easel.testing.policy import DEVICE, pool, started, tenant

NAMES = ("c0", "c1", "c2", "c3", "c4")
RUNGS = np.array([1.0, 2.0, 4.0])


def known(mean: list[float], sd: list[float], cost: list[float], **fields: object) -> Tenant:
    belief = Prior(np.array(mean), np.diag(np.square(sd)), 1e-9).belief()
    return Tenant("a", NAMES[: len(mean)], belief, np.array(cost), **fields)  # type: ignore[arg-type]


def curves() -> CurveBelief:
    rng = np.random.default_rng(1)
    quality = np.clip(rng.uniform(0.3, 0.6, (8, 5, 1)) + 0.1 * np.arange(3), 0.0, 1.0)
    cost = rng.uniform(1.0, 3.0, (1, 5, 1)) * RUNGS * np.ones((8, 1, 1))
    return learn_curves(CurveTable(tuple("abcdefgh"), NAMES, RUNGS, quality, cost)).belief()


def sliced(**fields: object) -> Tenant:
    return Tenant("a", NAMES, curves(), np.ones(5), **fields)  # type: ignore[arg-type]


# --- words


@pytest.mark.parametrize("name", ["easel", "fcfs", "mm-gp-ei"])
def test_an_idle_device_is_explained(name: str) -> None:
    told = LeaveIdle("d0", "no tenant has a candidate that may run here")
    assert named(name).decide(pool()) == told
    assert named(name).decide(pool(tenant(taken=np.ones(3, dtype=bool)))) == told


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("easel", "largest expected gain per cost, by time waited"),
        ("fcfs", "first come, first served, upper confidence bound per cost"),
        ("fcfs-oblivious", "first come, first served, upper confidence bound"),
        ("random", "random tenant, upper confidence bound per cost"),
        ("round-robin-ei", "round robin, expected improvement per cost"),
        ("most-cited", "round robin, fixed order"),
        ("mm-gp-ei", "warm start: cheapest"),
        ("mm-gp-ei-prior", "largest over all tenants, expected improvement per cost"),
        ("greedy", "greedy: everybody once, upper confidence bound per cost"),
    ],
)
def test_a_decision_names_its_rule(name: str, rule: str) -> None:
    assert started(named(name), pool(tenant("a"), tenant("b"))).reasons.rule == rule


def test_a_warm_start_scores_by_what_it_costs_and_weighs_nobody_against_it() -> None:
    decision = started(named("mm-gp-ei"), pool(tenant(cost=np.array([3.0, 2.0, 4.0]))))
    assert (decision.index, decision.reasons.acquisition) == (1, -2.0)
    assert decision.reasons.runner_up is None
    assert TrueGain({}).rule() == "true gain per cost"


# --- scores within a tenant


def test_costs_are_measured_against_the_mean_of_all_that_is_known() -> None:
    two = pool(tenant("a", cost=np.array([1.0, 2.0, 3.0])), tenant("b", cost=np.array([10.0, 20.0, 30.0])))
    assert mean_cost(two) == pytest.approx(11.0)
    assert mean_cost(two) == pytest.approx(11.0), "the second time it is remembered"
    assert mean_cost(two.on(PoolDevice("fast", speed=2.0), 0.0)) == pytest.approx(5.5)
    assert mean_cost(pool()) == 1.0


def test_the_bound_per_cost_depends_on_that_mean_and_the_other_on_nothing() -> None:
    state = pool(tenant(cost=np.array([1.0, 2.0, 3.0])))
    assert UpperBound().depends_on(state) == pytest.approx(2.0)
    assert UpperBound(cost_aware=False).depends_on(state) is None
    (one,) = state.tenants.values()
    beta = ucb_beta(3, 1, 0.1)
    plain = one.belief.mean + np.sqrt(beta) * one.belief.sd
    np.testing.assert_allclose(UpperBound(cost_aware=False).scores(one, state), plain)
    aware = one.belief.mean + np.sqrt(beta * 2.0 / np.array([1.0, 2.0, 3.0])) * one.belief.sd
    np.testing.assert_allclose(UpperBound().scores(one, state), aware)


def test_the_other_scores_are_what_they_are_called() -> None:
    state = pool(known([0.5, 0.7, 0.5], [0.1, 0.1, 0.2], [1.0, 2.0, 4.0], best=0.6))
    (one,) = state.tenants.values()
    gain = expected_improvement(one.belief.mean, one.belief.sd, 0.6)
    np.testing.assert_allclose(EIRate().scores(one, state), gain / one.cost)
    assert FixedOrder(("c2", "c0")).scores(one, state).tolist() == [-1.0, -2.0, 0.0]
    hindsight = TrueGain({"a": np.array([0.5, 0.9, np.nan])})
    np.testing.assert_allclose(hindsight.scores(one, state), [-0.1, 0.15, -0.25])


# --- which tenant


def test_hybrid_counts_how_long_nothing_moved_and_hands_over_what_it_remembers() -> None:
    offers = [BestCandidate(t, 0, s) for t, s in ((tenant("a", starts=1), 0.5), (tenant("b", starts=1), 0.9))]
    state = pool(*(o.tenant for o in offers))
    first = Hybrid(2).rank(state, offers).memory
    assert first == (0, frozenset("ab"), 0.0)
    second = Hybrid(2).rank(replace(state, memory=first), offers).memory
    third = Hybrid(2).rank(replace(state, memory=second), offers).memory
    assert (second[0], third[0]) == (1, 2)
    frozen = Hybrid(2).rank(replace(state, memory=third), offers)
    assert (frozen.rule, frozen.memory) == ("hybrid: frozen, so round robin", third)
    np.testing.assert_array_equal(frozen.priorities, RoundRobin().rank(state, offers).priorities)
    better = pool(tenant("a", starts=1, best=0.1), tenant("b", starts=1))
    assert Hybrid(2).rank(replace(better, memory=second), offers).memory[0] == 0


def test_the_floor_serves_whoever_waited_for_as_many_starts_as_it_says() -> None:
    rich, poor = tenant("rich"), tenant("poor", weight=1e-9)
    state = pool(rich, poor)
    for step, served, rule in (
        (19, "rich", "largest expected gain per cost, by time waited"),
        (20, "poor", "fairness floor: waited longest"),
    ):
        waited = replace(
            state,
            step=step,
            tenants={"rich": rich.changed(served_at=step), "poor": poor.changed(served_at=0)},
        )
        decision = started(Easel(share=0.1, patience=0.0), waited)
        assert (decision.tenant, decision.reasons.rule) == (served, rule)
        other = decision.reasons.runner_up
        assert other is not None
        assert other.tenant == ("poor" if served == "rich" else "rich")
        assert other.candidate in rich.candidates


def test_nobody_is_the_runner_up_of_a_tenant_alone_and_waiting_raises_a_score_by_its_square() -> None:
    state = pool(tenant("a"), tenant("b", weight=0.5))
    alone = started(Easel(), pool(tenant("a")))
    assert alone.reasons.runner_up is None
    for waited, served in ((0, "a"), (1, "b")):  # 0.5 · (1 + 1/2)² > 1
        later = replace(
            state,
            step=waited,
            tenants={"a": state.tenants["a"].changed(served_at=waited), "b": state.tenants["b"]},
        )
        assert started(Easel(), later).tenant == served


def test_a_tenant_with_a_budget_lends_a_trial_twice_its_bill_and_never_more_than_it_has() -> None:
    state = pool(tenant(), device=PoolDevice("d", price=3.0))
    for budget, limit in ((np.inf, np.inf), (100.0, 2.0 * 3.0 * 1.0), (4.0, 4.0)):
        one = tenant(budget=budget)
        assert start(state, one, 0, "rule", 0.5, None).limit == pytest.approx(limit)
    half = start(state, tenant(), 1, "rule", 0.5, None, fraction=0.5, cost_factor=0.5)
    assert (half.reasons.cost, half.fraction, half.reasons.acquisition) == (0.75, 0.5, 0.5)


def test_urgency_rises_from_one_to_two_as_the_slack_is_used_up() -> None:
    state = pool()
    assert urgency(tenant(), state, 5.0) == 1.0
    late = tenant(deadline=20.0)
    assert urgency(late, state, 5.0) == pytest.approx(1.25)
    assert urgency(late, state.on(DEVICE, 10.0), 5.0) == pytest.approx(1.5)
    assert urgency(late, state.on(DEVICE, 15.0), 5.0) == pytest.approx(2.0)


# --- what a trial or a look is worth


def test_gain_is_cut_at_the_ceiling_and_never_quite_nothing() -> None:
    m, s = np.array([0.5, 0.9]), np.array([0.2, 0.2])
    plain = expected_improvement(m, s, 0.6)
    np.testing.assert_allclose(gain_below(m, s, 0.6, np.inf), plain)
    np.testing.assert_allclose(gain_below(m, s, 0.6, 1.0), plain - expected_improvement(m, s, 1.0))
    assert gain_below(m, s, 1.2, 1.0).tolist() == [LEAST, LEAST]
    one = known([0.5, 0.9], [0.2, 0.2], [1.0, 1.0])
    np.testing.assert_allclose(expected_gain(one.belief, 0.6, 1.0), gain_below(m, s, 0.6, 1.0))


def test_a_running_trial_raises_the_bar_by_what_it_promises() -> None:
    state = pool(known([0.5, 0.9], [0.2, 0.2], [1.0, 1.0], baseline=0.6))
    (one,) = state.tenants.values()
    assert pending(one)[1] == 0.6
    after = state.started(started(Easel(), state)).tenants["a"]
    (trial,) = after.running
    belief, bar = pending(after)
    promise = expected_gain(one.belief, 0.6, np.inf)[trial.index]
    assert bar == pytest.approx(0.6 + float(promise))
    assert belief.sd[trial.index] < 1e-3


def test_a_look_that_tells_nothing_costs_itself_and_one_that_tells_all_saves_bad_runs() -> None:
    one = known([0.5, 0.7], [0.4, 0.1], [1.0, 2.0])
    costs, rate = one.cost, 0.05
    blind = look_rates(one, one.belief, 0.6, costs, Look(0.1, 0.25, noise=1e12), rate)
    gain = gain_below(one.belief.mean, one.belief.sd, 0.6, np.inf)
    follows = gain > rate * costs
    wanted = np.where(follows, gain / (1.25 * costs), 0.0)
    np.testing.assert_allclose(blind, wanted, rtol=1e-4)
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    clear = look_rates(one, one.belief, 0.6, costs, Look(0.1, 0.25, noise=1e-14), rate)
    ends = one.belief.mean[None, :] + nodes[:, None] * one.belief.sd[None, :]
    gains = np.clip(ends - 0.6, 0.0, None)
    follow = gains > rate * costs[None, :]
    sought = (weights @ np.where(follow, gains, 0.0)) / (0.25 * costs + (weights @ follow) * costs)
    np.testing.assert_allclose(clear, sought, rtol=1e-3)


def test_the_same_look_is_not_taken_twice() -> None:
    look = Look(fraction=0.1, cost=0.01, noise=1e-4)
    state = pool(tenant("a", looks=(look,), best=0.5))
    first = started(Easel(), state)
    told = "largest expected gain per cost, by time waited; a look at 10% of the data"
    assert first.reasons.rule == told
    after = state.started(first).finished(first, 0.7, 0.01).tenants["a"]
    rates = look_rates(after, after.belief, 0.7, after.cost, look, 0.0)
    assert np.isneginf(rates).tolist() == [k == first.index for k in range(3)]


# --- slices


def test_a_device_scales_what_is_known_of_its_kind_and_else_by_its_speed() -> None:
    one = sliced(cost_on={"gpu": np.array([2.0, np.inf, np.nan, 0.5, 0.0])})
    belief = curves()
    gpu = device_scale(one, belief, PoolDevice("g", kind="gpu", speed=9.0))
    assert gpu.tolist() == [2.0, np.inf, 1.0, 0.5, 1.0]
    assert device_scale(one, belief, PoolDevice("d", speed=4.0)).tolist() == [0.25] * 5


def worth(one: Tenant, belief: CurveBelief) -> np.ndarray:
    m, s = belief.cells()
    return np.asarray(curve_gain(m, s, one.best) / belief.costs_ahead())


def test_the_slice_that_promises_most_per_cost_is_taken_one_rung_on() -> None:
    one, belief = sliced(baseline=0.5), curves()
    rates = worth(one, belief).max(1)
    order = [int(k) for k in np.argsort(-rates)]
    for place in (0, 1, 2):
        taken = np.isin(np.arange(5), order[:place])
        found = best_slice(one.changed(taken=taken), pool(one))
        assert found is not None
        k = order[place]
        assert (found.candidate, found.rung) == (k, 0)
        assert found.rate == pytest.approx(rates[k])
        assert found.cost == pytest.approx(belief.costs_ahead()[k, 0])
    assert best_slice(one.changed(taken=np.ones(5, dtype=bool)), pool(one)) is None


def test_a_slice_that_would_be_too_short_goes_further_and_one_that_is_too_long_does_not() -> None:
    belief = curves()
    ahead = belief.costs_ahead()
    for least in (1e-9, float(ahead.min()) * 1.01, float(np.median(ahead)), float(ahead.max()) * 2):
        one = sliced(baseline=0.5, least_slice=least)
        found = best_slice(one, pool(one))
        assert found is not None
        k = found.candidate
        rung = max((r for r in range(3) if ahead[k, r] <= least), default=0)
        assert found.rung == rung
        assert found.cost == pytest.approx(ahead[k, rung])


def test_a_slice_says_whether_it_begins_or_goes_on_and_how_far() -> None:
    state = pool(sliced(baseline=0.5))
    first = started(Easel(), state)
    told = "largest expected gain per cost, by time waited"
    assert first.reasons.rule == f"{told}; begins to 25% of the trial"
    assert first.slice is not None
    assert (first.slice.share, first.slice.scale, first.slice.price) == (0.25, 1.0, 1.0)
    alone = replace(state.tenants["a"], taken=np.arange(5) != first.index)
    after = replace(state, tenants={"a": alone}).started(first).finished(first, 0.9, first.reasons.cost)
    second = Easel().decide(after)
    assert isinstance(second, StartTrial)
    assert second.reasons.rule == f"{told}; goes on to 50% of the trial"
    assert second.index == first.index


def test_slices_that_run_raise_the_bar_and_are_not_hoped_for_twice() -> None:
    state = pool(sliced(baseline=0.5))
    first = started(Easel(), state)
    running = state.started(first)
    found = best_slice(running.tenants["a"], running)
    alone = best_slice(state.tenants["a"].changed(taken=np.arange(5) == first.index), state)
    assert found is not None
    assert alone is not None
    assert found.candidate != first.index
    assert found.rate < alone.rate

"""The papers' own rules, each against a case small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from easel.records.decision import StartTrial
from easel.schedule.policies import named
from easel.schedule.policies.board import BestCandidate
from easel.schedule.policies.compose import Policy
from easel.schedule.policies.rank import candidate_set, empirical_gap
from easel.schedule.prior import Prior
from easel.schedule.state import PoolDevice, PoolState, Pull, Tenant

NAMES = ("m0", "m1", "m2")


def tenant(name: str, mean: list[float], sd: list[float], cost: list[float], **fields: object) -> Tenant:
    belief = Prior(np.array(mean), np.diag(np.square(sd)), 1e-9).belief()
    return Tenant(name, NAMES, belief, np.array(cost), **fields)  # type: ignore[arg-type]  # free fields


def pool(*members: Tenant) -> PoolState:
    state = PoolState({}, PoolDevice("d"))
    for member in members:
        state = state.joined(member)
    return state


def play(
    policy: Policy, state: PoolState, quality: dict[str, list[float]], steps: int
) -> list[tuple[str, int]]:
    played = []
    for _ in range(steps):
        decision = policy.decide(state)
        assert isinstance(decision, StartTrial)
        played.append((decision.tenant, decision.index))
        y = quality[decision.tenant][decision.index]
        state = state.started(decision).finished(decision, y, 1.0)
    return played


FLAT = {"mean": [0.5, 0.5, 0.5], "sd": [0.1, 0.1, 0.1], "cost": [1.0, 2.0, 3.0]}
WORLD = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.4, 0.4]}


def test_ucb_trades_deviation_against_cost_as_in_section_4_1() -> None:
    state = pool(tenant("a", [0.5, 0.5, 0.5], [0.1, 0.1, 0.4], [1.0, 2.0, 4.0]))
    beta = np.log(3 * 1 / 0.1)
    cost = np.array([1.0, 2.0, 4.0]) / (7 / 3)
    expected = 0.5 + np.sqrt(beta / cost) * np.array([0.1, 0.1, 0.4])
    decision = named("round-robin").decide(state)
    assert isinstance(decision, StartTrial)
    assert decision.index == int(expected.argmax())
    assert decision.reasons.acquisition == pytest.approx(expected.max())


def test_first_come_stays_with_the_first_and_round_robin_takes_turns() -> None:
    def state() -> PoolState:
        return pool(tenant("a", **FLAT), tenant("b", **FLAT))

    assert [t for t, _ in play(named("fcfs"), state(), WORLD, 4)] == ["a", "a", "a", "b"]
    assert [t for t, _ in play(named("round-robin"), state(), WORLD, 4)] == ["a", "b", "a", "b"]


def test_random_serves_everybody_about_equally() -> None:
    members = [tenant(n, [0.5] * 3, [0.1] * 3, [1.0] * 3) for n in "abcdefgh"]
    first = [named("random", seed).decide(pool(*members)) for seed in range(200)]
    counts = [sum(isinstance(d, StartTrial) and d.tenant == n for d in first) for n in "abcdefgh"]
    assert min(counts) > 10


def test_the_empirical_gap_follows_line_6_of_algorithm_2() -> None:
    # B=1.0,y=.6: bound 1.0, gap .4; B=.9,y=.8: bound .9, gap .1; B=1.2,y=.5: bound stays .9, gap .4
    pulls = (Pull(0, 0.6, 1.0), Pull(1, 0.8, 0.9), Pull(2, 0.5, 1.2))
    gaps = [empirical_gap(tenant("a", **FLAT, pulls=pulls[:n])) for n in (0, 1, 2, 3)]
    assert gaps == [np.inf, pytest.approx(0.4), pytest.approx(0.1), pytest.approx(0.4)]


def test_the_candidate_set_is_whoever_is_not_below_the_mean_gap() -> None:
    wide, narrow = (tenant(n, **FLAT, pulls=(Pull(0, y, 1.0),)) for n, y in (("wide", 0.2), ("narrow", 0.9)))
    offers = [BestCandidate(wide, 0, 1.0), BestCandidate(narrow, 0, 1.0)]
    assert candidate_set(offers).tolist() == [True, False]


def test_greedy_serves_everybody_once_and_then_the_largest_potential() -> None:
    played = play(named("greedy"), pool(tenant("a", **FLAT), tenant("b", **FLAT)), WORLD, 4)
    assert {t for t, _ in played[:2]} == {"a", "b"}
    # b did worse than promised, so its gap is the larger one
    assert played[2][0] == "b"


def test_hybrid_turns_to_round_robin_when_greedy_freezes_and_back_when_somebody_joins() -> None:
    K = 40
    names = tuple(f"m{k}" for k in range(K))

    def member(name: str, level: float) -> Tenant:
        belief = Prior(np.full(K, 0.5), 0.01 * np.eye(K), 1e-9).belief()
        return Tenant(name, names, belief, np.ones(K), baseline=level)

    state = pool(member("a", 0.0), member("b", 0.45))
    policy = named("hybrid")
    rules = []
    for _ in range(30):
        decision = policy.decide(state)
        assert isinstance(decision, StartTrial)
        rules.append(decision.reasons.rule)
        state = state.started(decision).finished(decision, 0.1 if decision.tenant == "a" else 0.4, 1.0)
    frozen = [r.startswith("hybrid: frozen") for r in rules]
    assert not any(frozen[:10])
    assert all(frozen[-5:])
    joined = policy.decide(state.joined(member("c", 0.0)))
    assert isinstance(joined, StartTrial)
    assert not joined.reasons.rule.startswith("hybrid: frozen")


def test_mm_gp_ei_runs_the_two_cheapest_of_everybody_first_and_then_the_largest_rate() -> None:
    state = pool(
        tenant("a", [0.5, 0.5, 0.5], [0.1] * 3, [3.0, 1.0, 2.0]),
        tenant("b", [0.5, 0.5, 0.9], [0.1] * 3, [1.0, 2.0, 3.0]),
    )
    world = {"a": [0.5] * 3, "b": [0.5] * 3}
    played = play(named("mm-gp-ei"), state, world, 6)
    assert sorted(played[:4]) == [("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    assert played[4] == ("b", 2)


def test_fixed_orders_follow_the_list_and_put_strangers_last() -> None:
    names = ("SqueezeNet", "Mine", "AlexNet")
    belief = Prior(np.zeros(3), np.eye(3)).belief()
    state = pool(Tenant("a", names, belief, np.ones(3)))
    order = []
    policy = named("most-cited")
    for _ in range(3):
        decision = policy.decide(state)
        assert isinstance(decision, StartTrial)
        order.append(decision.candidate)
        state = state.started(decision).finished(decision, 0.5, 1.0)
    assert order == ["AlexNet", "SqueezeNet", "Mine"]


def test_the_runner_up_is_the_best_of_another_tenant() -> None:
    state = pool(
        tenant("a", [0.9, 0.8, 0.1], [0.1] * 3, [1.0] * 3), tenant("b", [0.2, 0.5, 0.1], [0.1] * 3, [1.0] * 3)
    )
    decision = named("mm-gp-ei-prior").decide(state)
    assert isinstance(decision, StartTrial)
    assert decision.reasons.runner_up is not None
    assert (decision.reasons.runner_up.tenant, decision.reasons.runner_up.candidate) == ("b", "m1")

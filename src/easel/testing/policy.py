"""The contract of a policy, as tests: subclass `PolicySuite` and say how yours is made.

class TestMine(PolicySuite):
    def make(self) -> Policy: return Mine()
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pytest

from easel.records.decision import LeaveIdle, StartTrial
from easel.schedule.policies import Policy
from easel.schedule.prior import Prior, weak
from easel.schedule.state import PoolDevice, PoolState, Tenant

DEVICE = PoolDevice("d0")


def tenant(name: str = "a", K: int = 3, **fields: object) -> Tenant:
    """Returns a tenant with `K` candidates under a weak prior; `fields` replace what is given here."""
    given: dict[str, object] = {"belief": weak(K).belief(), "cost": np.linspace(1.0, 2.0, K), **fields}
    return Tenant(name, tuple(f"m{k}" for k in range(K)), **given)  # type: ignore[arg-type]  # free fields


def pool(*members: Tenant, device: PoolDevice = DEVICE) -> PoolState:
    """Returns the state of a pool that these tenants have joined, with `device` idle."""
    state = PoolState({}, device)
    for member in members:
        state = state.joined(member)
    return state


def started(policy: Policy, state: PoolState) -> StartTrial:
    """Returns the trial that the policy starts; fails where it leaves the device idle."""
    decision = policy.decide(state)
    assert isinstance(decision, StartTrial)
    return decision


ODD_COSTS = {
    "zero": [0.0, 1.0, 1.0],
    "infinite": [np.inf, 1.0, 2.0],
    "unknown": [np.nan, np.nan, 1.0],
    "all unknown": [np.nan, np.nan, np.nan],
    "negative": [-1.0, 1.0, 1.0],
}
ODD_PRIORS = {
    "singular": Prior(np.zeros(3), np.ones((3, 3)), 0.0),
    "certain": Prior(np.full(3, 0.5), np.zeros((3, 3)), 0.0),
    "duplicates": Prior(np.array([0.5, 0.5, 0.2]), np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]), 1e-6),
}


class PolicySuite(ABC):
    """What every policy promises on ordinary pools and on odd ones."""

    @abstractmethod
    def make(self) -> Policy:
        """Returns a new instance."""

    @pytest.fixture
    def policy(self) -> Policy:
        return self.make()

    def test_every_candidate_is_run_once_and_then_the_device_is_left_idle(self, policy: Policy) -> None:
        state = pool(tenant("a"), tenant("b"))
        seen = set()
        for _ in range(6):
            decision = started(policy, state)
            seen.add((decision.tenant, decision.candidate))
            state = state.started(decision).finished(decision, 0.5, 1.0)
        assert len(seen) == 6
        assert isinstance(policy.decide(state), LeaveIdle)

    def test_equal_states_give_equal_decisions_that_explain_themselves(self, policy: Policy) -> None:
        first = started(policy, pool(tenant("a"), tenant("b")))
        again = started(policy, pool(tenant("a"), tenant("b")))
        assert first == again
        reasons = first.reasons
        assert np.isfinite([reasons.mean, reasons.deviation, reasons.acquisition, reasons.cost]).all()
        assert reasons.rule in reasons.numbers()

    @pytest.mark.parametrize("cost", ODD_COSTS.values(), ids=ODD_COSTS)
    def test_odd_costs_never_reach_a_decision(self, policy: Policy, cost: list[float]) -> None:
        state = pool(tenant("a", cost=np.array(cost)), tenant("b"))
        decisions = 0
        while isinstance(decision := policy.decide(state), StartTrial):
            assert np.isfinite(decision.reasons.cost)
            assert np.isfinite(decision.reasons.acquisition)
            state = state.started(decision).finished(decision, 0.4, 1.0)
            decisions += 1
        assert decisions >= 3, "the tenant with ordinary costs is served to its end"

    @pytest.mark.parametrize("prior", ODD_PRIORS.values(), ids=ODD_PRIORS)
    @pytest.mark.parametrize("quality", [0.5, np.nan, 0.0], ids=["constant", "failing", "zero"])
    def test_odd_priors_and_results_are_ordinary(self, policy: Policy, prior: Prior, quality: float) -> None:
        state = pool(tenant("a", belief=prior.belief()), tenant("b", belief=prior.belief()))
        for _ in range(6):
            decision = started(policy, state)
            assert np.isfinite([decision.reasons.mean, decision.reasons.deviation]).all()
            assert np.isfinite(decision.reasons.acquisition)
            state = state.started(decision).finished(decision, quality, 1.0)
        assert isinstance(policy.decide(state), LeaveIdle)
        assert all(np.isfinite(t.best) for t in state.tenants.values())

    def test_an_empty_pool_and_a_single_candidate(self, policy: Policy) -> None:
        assert isinstance(policy.decide(pool()), LeaveIdle)
        assert started(policy, pool(tenant(K=1))).candidate == "m0"

    def test_the_result_of_a_tenant_who_left_changes_nothing(self, policy: Policy) -> None:
        state = pool(tenant("a"), tenant("b"))
        decision = started(policy, state)
        gone = state.started(decision).left(decision.tenant)
        assert gone.finished(decision, 0.9, 1.0) is gone
        assert started(policy, gone).tenant != decision.tenant

    def test_candidates_that_run_are_not_started_again(self, policy: Policy) -> None:
        state = pool(tenant("a"))
        seen = set()
        for _ in range(3):
            decision = started(policy, state)
            seen.add(decision.candidate)
            state = state.started(decision)
        assert len(seen) == 3
        assert isinstance(policy.decide(state), LeaveIdle)

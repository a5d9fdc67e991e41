"""The pool's mapping and the boards kept on it, against doing everything anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easel.records.decision import Decision, LeaveIdle
from easel.schedule.members import Members
from easel.schedule.policies import POLICIES, Easel, Policy, named
from easel.schedule.prior import weak
from easel.schedule.simulate import World, simulate, tenants
from easel.schedule.state import Look, PoolDevice, PoolState, Tenant
from easel.schedule.table import synthetic

NAMES = "abc"


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(NAMES), st.integers()), max_size=30))
def test_every_mapping_of_a_branching_history_stays_as_it_was(steps: list[tuple[int, str, int]]) -> None:
    first = dict.fromkeys(NAMES, 0)
    made, expected = [Members(dict(first))], [first]
    for which, name, value in steps:
        at = which % len(made)
        made.append(made[at].succeeded(name, value))
        expected.append({**expected[at], name: value})
    assert [dict(one) for one in made] == expected


def test_what_changed_since_is_known_along_one_line_only() -> None:
    first = Members({"a": 1, "b": 2})
    last = first.succeeded("a", 3).succeeded("b", 4).succeeded("a", 5)
    assert last.since(first) == ["a", "b", "a"]
    assert last.since(last) == []
    beside = first.succeeded("a", 6)
    assert beside.since(last) is None
    assert first.since(last) is None


class Anew:
    """The same policy over a pool that remembers nothing; of the default also its rule spelled out."""

    name = "anew"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def decide(self, state: PoolState) -> Decision:
        fresh = {name: tenant.changed(cost=tenant.cost) for name, tenant in state.tenants.items()}
        pool = PoolState(fresh, state.device, state.now, state.step, state.memory)
        if isinstance(self.policy, Easel):
            return self.spelled_out(self.policy, pool)
        return self.policy.decide(pool)

    def spelled_out(self, easel: Easel, state: PoolState) -> Decision:
        offers = [offer for t in state.tenants.values() if (offer := easel._offer(t, state)) is not None]
        if not offers:
            return LeaveIdle(state.device.name, "no tenant has a candidate that may run here")
        waited = np.array([state.step - o.tenant.served_at for o in offers])
        scores = np.array([o.score for o in offers]) * (1.0 + waited / len(offers)) ** easel.patience
        order = np.argsort(-scores, kind="stable")[:2]
        chosen, rule = offers[order[0]], "largest expected gain per cost, by time waited"
        oldest = int(waited.argmax())
        if waited[oldest] >= len(state.tenants) / easel.share:
            chosen, rule = offers[oldest], "fairness floor: waited longest"
        other = next((offers[i] for i in order if offers[i] is not chosen), None)
        return easel._start(state, chosen, rule, other)


def odd_members(world: World, rng: np.random.Generator) -> list[Tenant]:
    """Some with a budget, a deadline, looks or hardly any weight; some exactly alike."""
    members = tenants(world, weak(len(world.table.candidates)))
    for i, member in enumerate(members):
        changes: list[dict[str, object]] = [
            {},
            {"budget": float(rng.uniform(0.5, 3.0))},
            {"deadline": float(rng.uniform(0.5, 3.0))},
            {"looks": (Look(0.1, 0.05, noise=1e-3),)},
            {"weight": 1e-9},
            {"cost": np.ones(len(member.candidates))},
            {"cost": np.ones(len(member.candidates))},
        ]
        members[i] = member.changed(**changes[i % len(changes)])
    return members


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
@pytest.mark.parametrize("policy", [Easel(share=0.5), *map(named, POLICIES)], ids=["floor", *POLICIES])
def test_a_pool_that_remembers_decides_as_one_that_does_not(policy: Policy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = synthetic(rng, tenants=int(rng.integers(1, 15)), candidates=5)
    world = World(
        table,
        (
            PoolDevice("a"),
            PoolDevice("b", speed=2.0),
            PoolDevice("c", price=3.0),
            PoolDevice("d", kind="gpu"),
            PoolDevice("e"),
        ),
        arrivals={"t000": 0.3, "t001": 0.7},
        departures={"t002": 0.4},
        failures=0.1,
        cost_noise=0.3,
        ceiling=1.0,
    )
    members = odd_members(world, rng)
    ours, brute = (simulate(world, p, members, 9.0, np.random.default_rng(1)) for p in (policy, Anew(policy)))
    assert [step.trial for step in ours.steps] == [step.trial for step in brute.steps]
    assert np.array_equal(ours.curve.loss, brute.curve.loss)

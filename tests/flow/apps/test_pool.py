"""Apps in the scheduler's eyes."""

from __future__ import annotations

import numpy as np
import pytest

from easel.declare.parse import parse_program
from easel.flow.apps.pool import Played, prior_of, replay, tenant_of
from easel.match.candidate import Candidate
from easel.match.propose import propose_candidates
from easel.match.summary import expected_summary
from easel.records.decision import LeaveIdle, StartTrial
from easel.schedule.policies import named
from easel.schedule.state import Device

TABLE = parse_program("{input: {[Tensor[8]], []}, output: {[Tensor[3]], []}}")
IMAGE = parse_program("{input: {[Tensor[28, 28, 1]], []}, output: {[Tensor[10]], []}}")
DEVICE = Device("core")


def pool() -> list[tuple[str, tuple[Candidate, ...]]]:
    return [
        ("table", propose_candidates(TABLE, expected_summary(TABLE, 500))),
        ("image", propose_candidates(IMAGE, expected_summary(IMAGE, 500))),
    ]


def test_every_app_is_served_and_no_candidate_twice() -> None:
    tenants = [tenant_of(name, candidates) for name, candidates in pool()]
    policy, history = named("easel"), list[Played]()
    for step in range(12):
        decision = policy.decide(replay(tenants, history, DEVICE, float(step)))
        assert isinstance(decision, StartTrial)
        history.append(Played(decision, 0.5 + 0.01 * step, 1.0))
    assert {played.trial.tenant for played in history} == {"table", "image"}
    assert len({(played.trial.tenant, played.trial.candidate) for played in history}) == 12


def test_the_first_trial_of_an_app_is_a_cheap_one() -> None:
    name, candidates = pool()[1]
    decision = named("easel").decide(replay([tenant_of(name, candidates)], [], DEVICE, 0.0))
    assert isinstance(decision, StartTrial)
    costs = sorted(candidate.cost_s for candidate in candidates)
    assert candidates[decision.index].cost_s <= costs[len(costs) // 2]


def test_a_running_or_failed_candidate_is_not_chosen_again() -> None:
    only = (Candidate("svm", cost_s=1.0), Candidate("linear", cost_s=1.0))
    tenants = [tenant_of("app", only)]
    policy = named("easel")
    first = policy.decide(replay(tenants, [], DEVICE, 0.0))
    assert isinstance(first, StartTrial)
    second = policy.decide(replay(tenants, [Played(first, None)], DEVICE, 1.0))
    assert isinstance(second, StartTrial)
    assert second.candidate != first.candidate
    failed = [Played(first, float("nan"), 1.0), Played(second, 0.7, 1.0)]
    assert isinstance(policy.decide(replay(tenants, failed, DEVICE, 2.0)), LeaveIdle)


def test_an_app_that_was_deleted_while_training_is_forgotten() -> None:
    tenants = [tenant_of(name, candidates) for name, candidates in pool()]
    decision = named("easel").decide(replay(tenants, [], DEVICE, 0.0))
    assert isinstance(decision, StartTrial)
    rest = [tenant for tenant in tenants if tenant.name != decision.tenant]
    assert set(replay(rest, [Played(decision, 0.9, 1.0)], DEVICE, 1.0).tenants) == {rest[0].name}


def test_what_other_apps_found_moves_the_prior() -> None:
    candidates = (Candidate("svm"), Candidate("linear"))
    plain = prior_of(candidates)
    informed = prior_of(candidates, [{"svm": 0.9, "linear": 0.5}] * 6)
    assert plain.mean[0] == plain.mean[1]
    assert informed.mean[0] > informed.mean[1] + 0.1
    assert np.linalg.eigvalsh(plain.cov).min() > 0


def test_costs_of_a_tenant_are_its_candidates_estimates() -> None:
    tenant = tenant_of("app", (Candidate("svm", cost_s=3.0),))
    assert tenant.cost.tolist() == pytest.approx([3.0])

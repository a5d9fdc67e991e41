"""A study among others in the pool."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from easel.declare.goal import maximise, minimise
from easel.flow.apps.guests import Guest, with_guests
from easel.flow.studies.pool import worth
from easel.ids import JobId, StudyId
from easel.records.decision import StartTrial
from easel.records.study import Outcome, StudyPoint
from easel.schedule.policies import named
from easel.schedule.prior import NOISE, Prior
from easel.schedule.state import Device, Tenant

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def point(outcome: Outcome = Outcome.COMPLETED, **values: Any) -> StudyPoint:
    return StudyPoint(
        StudyId("stu"), 0, {}, outcome, JobId("job"), values, {}, None, None, 0, None, None, BEGAN, BEGAN
    )


def test_a_share_to_be_maximised_is_worth_itself_and_what_misses_a_constraint_nothing() -> None:
    goal = maximise("accuracy", "time <= 10")
    found = worth(
        goal,
        [
            point(accuracy=0.8, time=1.0),
            point(accuracy=0.9, time=11.0),
            point(Outcome.FAILED, accuracy=0.9, time=1.0),
            point(time=1.0),
        ],
    )
    assert found == [0.8, 0.0, 0.0, 0.0]


def test_a_cost_is_worth_more_the_further_it_falls_below_the_first() -> None:
    found = worth(minimise("cost"), [point(cost=4.0), point(cost=2.0), point(cost=8.0), point(cost=0.0)])
    assert found[0] == pytest.approx(0.5)
    assert found[2] < found[0] < found[1] < found[3] < 1.0


def guest(name: str, gain: float, starts: list[datetime]) -> Guest:
    tenant = Tenant(
        name=name,
        candidates=("next point",),
        belief=Prior(np.array([0.5]), np.array([[gain**2]]), NOISE).belief(),
        cost=np.array([1.0]),
        ceiling=1.0,
        best=0.5,
    )
    return Guest(tenant, BEGAN, tuple(starts), lambda tx, decision: None)


def test_a_study_that_promises_little_is_served_now_and_then_too() -> None:
    policy, starts = named("easel"), {"eager": list[datetime](), "modest": list[datetime]()}
    for turn in range(30):
        guests = [guest("eager", 0.2, starts["eager"]), guest("modest", 0.02, starts["modest"])]
        decision = policy.decide(with_guests([], [], guests, Device("local/0"), float(turn)))
        assert isinstance(decision, StartTrial)
        starts[decision.tenant].append(BEGAN + timedelta(seconds=turn + 1))
    assert len(starts["eager"]) > len(starts["modest"]) >= 3

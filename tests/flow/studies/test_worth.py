"""What a study's points are worth."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from easel.declare.goal import maximise, minimise
from easel.flow.studies.worth import worth
from easel.ids import JobId, StudyId
from easel.records.study import PointOutcome, StudyPoint

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def point(outcome: PointOutcome = PointOutcome.COMPLETED, **values: Any) -> StudyPoint:
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
            point(PointOutcome.FAILED, accuracy=0.9, time=1.0),
            point(time=1.0),
        ],
    )
    assert found == [0.8, 0.0, 0.0, 0.0]


def test_a_cost_is_worth_more_the_further_it_falls_below_the_first() -> None:
    found = worth(minimise("cost"), [point(cost=4.0), point(cost=2.0), point(cost=8.0), point(cost=0.0)])
    assert found[0] == pytest.approx(0.5)
    assert found[2] < found[0] < found[1] < found[3] < 1.0

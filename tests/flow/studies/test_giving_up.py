"""When a study is given up: by values, with points that run beside those that failed."""

from __future__ import annotations

from datetime import UTC, datetime

from easel.declare.goal import minimise
from easel.flow.studies.giving_up import why_give_up
from easel.ids import JobId, StudyId
from easel.records.study import PointOutcome, StudyPoint

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
GOAL = minimise("los")


def point(outcome: PointOutcome | None, reason: str | None = None, **values: float) -> StudyPoint:
    return StudyPoint(
        StudyId("stu"), 0, {}, outcome, JobId("job"), values, {}, None, reason, 0, None, None, BEGAN, BEGAN
    )


FAILED = point(PointOutcome.FAILED, "exit code 3: no such data")
SILENT = point(
    PointOutcome.COMPLETED, "it did not measure los; its log ends with: loss 0.3", loss=0.3, time=1.0
)
RUNS = point(None)
STOPPED = point(PointOutcome.STOPPED)


def test_three_failures_are_enough_although_others_run() -> None:
    """With two workers one point always runs when another ends: the whole budget was spent on a slip."""
    assert why_give_up(GOAL, [FAILED, FAILED, RUNS]) is None
    told = why_give_up(GOAL, [FAILED, FAILED, FAILED, RUNS])
    assert told == "its first 3 points all failed, the last with: exit code 3: no such data"


def test_three_points_without_the_goal_are_enough_although_others_run() -> None:
    assert why_give_up(GOAL, [SILENT, SILENT, RUNS]) is None
    told = why_give_up(GOAL, [SILENT, FAILED, SILENT, RUNS]) or ""
    assert "did not measure los, which the goal asks for: they measured loss (did you mean loss?)" in told
    assert told.endswith("its log ends with: loss 0.3")


def test_one_point_that_measured_the_goal_is_reason_to_go_on() -> None:
    assert why_give_up(GOAL, [SILENT, FAILED, FAILED, point(PointOutcome.COMPLETED, los=0.3)]) is None


def test_points_that_the_study_cut_short_say_nothing() -> None:
    assert why_give_up(GOAL, [FAILED, FAILED, FAILED, STOPPED]) is None

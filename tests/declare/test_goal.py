"""Goals: objective, constraints and budget as people write them."""

from __future__ import annotations

import math

import pytest

from easel.declare.goal import At, Direction, constraint, maximise, minimise, parse_goal
from easel.errors import InvalidInput

NEPHELE = minimise("cost", "accuracy >= 0.85", "time <= 300", budget={"cost": 20}, at="any")


def test_a_goal_survives_the_way_into_a_file_and_back() -> None:
    assert parse_goal(NEPHELE.to_dict()) == NEPHELE
    third = maximise("accuracy", f"cost <= {1 / 3}")
    assert parse_goal(third.to_dict()) == third


def test_constraints_hold_for_what_was_measured_only() -> None:
    assert NEPHELE.meets({"accuracy": 0.85, "time": 300, "cost": 1})
    assert not NEPHELE.meets({"accuracy": 0.84, "time": 300, "cost": 1})
    assert not NEPHELE.meets({"accuracy": 0.9, "cost": 1})
    assert not NEPHELE.meets({"accuracy": math.nan, "time": 1, "cost": 1})
    assert not NEPHELE.meets({"accuracy": 0.9, "time": 1, "cost": math.nan})


def test_the_budget_counts_what_its_kind_says() -> None:
    assert NEPHELE.budget.spend({"cost": 2.5, "time": 9}) == 2.5
    assert NEPHELE.budget.spend({"cost": math.nan}) == 0.0
    assert maximise("a", budget={"count": 3}).budget.spend({}) == 1.0
    assert maximise("a", budget={"time": 3}).budget.spend({"time": 2.0}) == 2.0


def test_goals_without_a_budget_are_unlimited_and_judged_at_full_fidelity() -> None:
    goal = parse_goal({"maximise": "f1", "also": {"memory": "minimise"}})
    assert goal.budget.amount == math.inf
    assert goal.at is At.FULL
    assert goal.also == {"memory": Direction.MINIMISE}
    assert goal.better({"f1": 0.9}, {"f1": 0.8})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, "names what to"),
        ({"minimise": "a", "maximise": "a"}, "named twice"),
        ({"minimise": "a", "wish": 1}, "wish"),
        ({"minimise": "a", "budget": {"cost": 0}}, "above 0"),
        ({"minimise": "a", "budget": {"cost": -1}}, "above 0"),
        ({"minimise": "a", "budget": {"cost": math.nan}}, "above 0"),
        ({"minimise": "a", "budget": {"apples": 3}}, "budget is one of"),
        ({"minimise": "a", "budget": {"cost": 1, "time": 2}}, "exactly one"),
        ({"minimise": "a", "budget": {"cost": "much"}}, "number"),
        ({"minimise": "a", "at": "half"}, "at is one of"),
        ({"minimise": "a", "constraints": ["b >= 2", "b <= 1"]}, "contradicts"),
        ({"minimise": "a", "constraints": ["b <= 2", "b <= 1"]}, "repeats"),
    ],
)
def test_a_contradictory_goal_is_refused(data: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        parse_goal(data)


@pytest.mark.parametrize("text", ["accuracy", "accuracy > 0.5", "<= 3", "a <= b", "a <= nan", "a <= inf"])
def test_a_constraint_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        constraint(text)

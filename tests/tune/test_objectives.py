"""Several objectives: the front between them is found, and what is recommended of it was measured."""

from __future__ import annotations

import math
from typing import Any

import pytest

import easel
from easel.declare.goal import Direction, parse_goal
from easel.declare.study import parse_study
from easel.errors import InvalidInput
from easel.study import Finished, Float, Space, Tuner
from easel.tune.recommend import nearest

SPACE = Space((Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)))


def zdt1(point: dict[str, Any]) -> dict[str, float]:
    """Deb's first test problem in two dimensions: its front is y = 0, where f2 = 1 − √f1."""
    g = 1.0 + 9.0 * point["y"]
    return {"f1": point["x"], "f2": g * (1.0 - math.sqrt(point["x"] / g))}


def test_the_front_is_spread_and_lies_near_the_true_one() -> None:
    study = easel.minimise(zdt1, SPACE, ["f1", "f2"], budget={"count": 24})
    values = [o.values for o in study.front]
    near = [v for v in values if v["f2"] < 1.0 - math.sqrt(v["f1"]) + 0.1]
    assert len(near) >= 5
    assert min(v["f1"] for v in near) < 0.2
    assert max(v["f1"] for v in near) > 0.5
    assert [v["f1"] for v in values] == sorted(v["f1"] for v in values)  # the first objective orders them


def test_what_is_recommended_of_several_objectives_was_measured_and_lies_on_the_front() -> None:
    study = easel.minimise(zdt1, SPACE, ["f1", "f2"], constraints=["f1 >= 0.1"], budget={"count": 12})
    assert study.best is not None
    assert study.best.observed is not None
    assert study.best.observed["f1"] >= 0.1
    assert dict(study.best.point) in [dict(o.point) for o in study.front]


def test_a_resumed_study_asks_for_the_same_point() -> None:
    goal = parse_goal({"minimise": ["f1", "f2"], "budget": {"count": 20}})
    first = Tuner(SPACE, goal, seed=3)
    for _ in range(8):
        asked = first.ask()
        assert not isinstance(asked, Finished)
        first.tell(asked.number, zdt1(dict(asked.point)))
    second = Tuner.resume(SPACE, goal, "auto", first.observations, seed=3)
    one, two = first.ask(), second.ask()
    assert not isinstance(one, Finished)
    assert not isinstance(two, Finished)
    assert one.point == two.point
    assert math.isclose(sum(float(one.why[f"weight of {name}"]) for name in ("f1", "f2")), 1.0)


def test_objectives_in_both_directions_are_declared_and_stored_alike() -> None:
    goal = parse_goal({"maximise": "accuracy", "minimise": ["time", "memory"], "budget": {"count": 5}})
    assert goal.objectives == {
        "accuracy": Direction.MAXIMISE,
        "time": Direction.MINIMISE,
        "memory": Direction.MINIMISE,
    }
    assert parse_goal(goal.to_dict()) == goal
    assert not goal.meets({"accuracy": 1.0, "time": 2.0})  # memory was not measured


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minimise": ["loss", "loss"]}, "named twice"),
        ({"minimise": "loss", "maximise": "loss"}, "named twice"),
        ({"minimise": "loss", "and": ["time"]}, "maps further objectives"),
        ({"minimise": list("abcdefg")}, "at most 6 objectives"),
        ({}, "what to 'minimise' or to 'maximise'"),
    ],
)
def test_objectives_that_cannot_be_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_goal(given)


def test_no_run_is_ended_by_its_curve_where_there_are_several_objectives() -> None:
    """What is poor in one of them may be the best in another."""
    plain = {
        "job": {"name": "t", "run": {"kind": "command", "argv": ["true"]}},
        "space": SPACE.to_dict(),
        "goal": {"minimise": "loss", "budget": {"count": 5}},
        "strategy": "auto",
        "options": {},
        "seed": 0,
        "workers": 1,
        "early_stopping": True,
        "data": {"dimension": "data_fraction", "keep": [], "label": None},
    }
    assert parse_study(plain).curve is not None
    several = {**plain, "goal": {**plain["goal"], "and": {"size": "minimise"}}}  # type: ignore[dict-item]
    assert parse_study(several).curve is None


def test_a_trial_that_returns_only_one_of_the_objectives_is_told_so() -> None:
    with pytest.raises(InvalidInput, match="returned no f2"):
        easel.minimise(lambda point: {"f1": point["x"]}, SPACE, ["f1", "f2"], budget={"count": 9})


def test_nothing_is_recommended_while_no_trial_measured_every_objective() -> None:
    tuner = Tuner(SPACE, parse_goal({"minimise": ["f1", "f2"], "budget": {"count": 9}}))
    tuner.tell({"x": 0.5, "y": 0.5}, {"f1": 1.0})
    tuner.tell({"x": 0.1, "y": 0.5}, {"f2": 1.0})
    assert tuner.recommend() is None
    assert nearest(tuner.state) is None
    tuner.tell({"x": 0.2, "y": 0.2}, {"f1": 3.0, "f2": 4.0})
    found = tuner.recommend()
    assert found is not None
    assert found.point == {"x": 0.2, "y": 0.2}

"""Which dimensions of a study matter."""

from __future__ import annotations

import pytest

from easel.declare.dimensions import Categorical, Float, When
from easel.declare.goal import parse_goal
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.tune.encode import scattered
from easel.tune.importance import importances
from easel.tune.tuner import Tuner

GOAL = parse_goal({"maximise": "score", "constraints": ["memory <= 9"], "budget": {"count": 50}})


def told(space: Space, count: int = 24) -> Tuner:
    """A study of `3 a + b + 0 c`; memory depends on `c` alone."""
    tuner = Tuner(space, GOAL, "random", seed=1)
    for point in scattered(space, count, tuner.state.fixed_rng("test")):
        a, b, c = (float(point.get(name, 0.0)) for name in "abc")
        tuner.tell(point, {"score": 3 * a + b, "memory": c})
    return tuner


def test_shares_follow_the_variance_that_each_dimension_explains() -> None:
    tuner = told(Space((Float("c", 0, 1), Float("b", 0, 1), Float("a", 0, 1))))
    found = importances(tuner.state)
    assert [one.dimension for one in found] == ["a", "b", "c"]
    shares = {one.dimension: one.share for one in found}
    assert shares["a"] == pytest.approx(0.9, abs=0.1)  # 9 of 10 parts
    assert shares["b"] == pytest.approx(0.1, abs=0.05)
    assert shares["c"] < 0.02


def test_another_quantity_has_importances_of_its_own() -> None:
    tuner = told(Space((Float("a", 0, 1), Float("b", 0, 1), Float("c", 0, 1))))
    assert importances(tuner.state, "memory")[0].dimension == "c"
    with pytest.raises(InvalidInput, match="no model of 'speed'; there are models of memory, score"):
        importances(tuner.state, "speed")


def test_a_dimension_that_applies_to_half_of_the_points_counts_there() -> None:
    switch = Categorical("on", ("yes", "no"))
    space = Space((switch, Float("a", 0, 1, when=When("on", ("yes",))), Float("b", 0, 1)))
    found = {one.dimension: one.share for one in importances(told(space, 40).state)}
    assert found["on"] > found["b"]  # with it `a` comes and goes
    assert 0.05 < found["a"] < 1


def test_two_points_say_nothing_of_importance() -> None:
    with pytest.raises(InvalidInput, match="at least 3"):
        importances(told(Space((Float("a", 0, 1),)), 2).state)


def test_what_never_varies_has_no_importance() -> None:
    space = Space((Float("a", 0, 1),))
    tuner = Tuner(space, GOAL, "random")
    for point in scattered(space, 5, tuner.state.fixed_rng("test")):
        tuner.tell(point, {"score": 1.0, "memory": 1.0})
    assert [one.share for one in importances(tuner.state)] == [0.0]

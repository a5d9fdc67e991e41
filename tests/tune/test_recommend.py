"""A recommendation never trades what was measured for a guess."""

from __future__ import annotations

from easel.declare.dimensions import Float
from easel.declare.goal import maximise
from easel.declare.space import Space
from easel.records.study import Estimate, PointOutcome, Recommendation
from easel.tune.recommend import clipped, nearest, settle_for_measured
from easel.tune.state import State
from easel.tune.tuner import Tuner

SPACE = Space((Float("x", 0, 1),))
GOAL = maximise("accuracy", "time <= 10", budget={"count": 9})


def state(*told: tuple[float, float, float]) -> State:
    tuner = Tuner(SPACE, GOAL, "random")
    for x, accuracy, time in told:
        tuner.tell({"x": x}, {"accuracy": accuracy, "time": time})
    return tuner.state


def guess(x: float, accuracy: Estimate, time: Estimate) -> Recommendation:
    return Recommendation({"x": x}, {"accuracy": accuracy, "time": time}, 0.9)


def test_a_measured_point_is_left_only_for_one_that_is_better_at_its_poor_end() -> None:
    known = state((0.1, 0.8, 5.0), (0.2, 0.9, 50.0))
    hoped = guess(0.5, Estimate(0.95, 0.7, 1.0), Estimate(5.0, 4.0, 6.0))
    kept = settle_for_measured(known, hoped)
    assert (kept.point["x"], kept.observed and kept.observed["accuracy"]) == (0.1, 0.8)
    sure = guess(0.5, Estimate(0.95, 0.85, 1.0), Estimate(5.0, 4.0, 6.0))
    assert settle_for_measured(known, sure).point["x"] == 0.5
    late = guess(0.5, Estimate(0.95, 0.85, 1.0), Estimate(5.0, 4.0, 16.0))
    assert settle_for_measured(known, late).point["x"] == 0.1


def test_a_point_that_was_measured_to_be_infeasible_is_not_recommended() -> None:
    known = state((0.1, 0.8, 5.0), (0.2, 0.9, 50.0))
    wrong = guess(0.2, Estimate(0.95, 0.9, 1.0), Estimate(5.0, 4.0, 6.0))
    assert settle_for_measured(known, wrong).point["x"] == 0.1


def test_a_guess_stands_while_nothing_feasible_was_measured() -> None:
    hoped = guess(0.5, Estimate(0.5, 0.1, 1.0), Estimate(5.0, 4.0, 6.0))
    assert settle_for_measured(state((0.2, 0.9, 50.0)), hoped) == hoped


def test_predictions_lie_where_the_quantity_can() -> None:
    found = clipped(state((0.1, 0.8, 5.0)), guess(0.5, Estimate(1.09, 0.9, 1.3), Estimate(1.0, -2.0, 4.0)))
    assert found.predicted["accuracy"] == Estimate(1.0, 0.9, 1.0)
    assert found.predicted["time"] == Estimate(1.0, 0.0, 4.0)
    percent = clipped(state((0.1, 80.0, 5.0)), guess(0.5, Estimate(109, 90, 130), Estimate(1, 1, 1)))
    assert percent.predicted["accuracy"].high == 100.0


def test_the_nearest_miss_is_named_with_what_it_misses() -> None:
    found = nearest(state((0.1, 0.8, 50.0), (0.2, 0.7, 11.0)))
    assert found is not None
    assert (found.observation.point["x"], [str(c) for c in found.missed]) == (0.2, ["time <= 10"])
    feasible = nearest(state((0.1, 0.8, 5.0), (0.2, 0.9, 5.0), (0.3, 0.99, 11.0)))
    assert feasible is not None
    assert (feasible.observation.point["x"], feasible.missed) == (0.2, ())


def test_nothing_is_near_where_nothing_completed() -> None:
    tuner = Tuner(SPACE, GOAL, "random")
    tuner.tell({"x": 0.5}, {"accuracy": 0.9, "time": 1.0}, PointOutcome.FAILED)
    assert nearest(tuner.state) is None

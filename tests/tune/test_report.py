"""The front between a study's objective and what else matters."""

from __future__ import annotations

import math

from easel.declare.dimensions import Integer
from easel.declare.goal import parse_goal
from easel.declare.space import Space
from easel.records.study import PointOutcome
from easel.tune.report import front
from easel.tune.tuner import Tuner


def test_the_front_keeps_feasible_observations_that_nothing_beats() -> None:
    goal = parse_goal({"maximise": "accuracy", "constraints": ["time <= 10"], "also": {"memory": "minimise"}})
    tuner = Tuner(Space((Integer("k", 1, 9),)), goal, "random")
    measured = [
        (0.9, 8.0, 5.0),  # on the front
        (0.8, 2.0, 5.0),  # on the front: less memory
        (0.8, 3.0, 5.0),  # beaten by the one before
        (0.7, 9.0, 5.0),  # beaten by the first
        (0.99, 1.0, 50.0),  # too slow
        (math.nan, 0.1, 5.0),  # not measured
    ]
    for k, (accuracy, memory, time) in enumerate(measured, start=1):
        tuner.tell({"k": k}, {"accuracy": accuracy, "memory": memory, "time": time})
    tuner.tell({"k": 7}, {"accuracy": 1.0, "memory": 0.0, "time": 1.0}, PointOutcome.FAILED)
    tuner.tell({"k": 8}, {"accuracy": 1.0, "time": 1.0})
    assert [o.point["k"] for o in front(tuner.state)] == [1, 2]

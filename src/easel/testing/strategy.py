"""The contract of a strategy, as tests: subclass `StrategySuite` and say how yours is made.

class TestMine(StrategySuite):
    def make(self) -> Strategy: return Mine()
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from easel.declare.dimensions import Categorical, DimensionRole, Float, Integer, Ordinal, When, fraction
from easel.declare.goal import Goal, maximise, minimise
from easel.declare.rates import Rates, Term
from easel.declare.space import Point, Space, point_key
from easel.records.study import Finished, PointOutcome, Recommendation
from easel.tune.strategy import Strategy
from easel.tune.tuner import Tuner

FINITE = Space(
    (
        Categorical("machine", ("small", "large"), role=DimensionRole.RESOURCE),
        Ordinal("rate", (0.001, 0.01, 0.1)),
        Integer("depth", 1, 3),
        fraction("share", (0.1, 0.5, 1.0)),
    ),
    rates=Rates((Term(by="machine", table={"small": 1.0, "large": 3.0}),)),
)
MIXED = Space(
    (
        Float("rate", 1e-4, 1e-1, log=True),
        Categorical("kind", ("plain", "boosted")),
        Integer("rounds", 1, 50, when=When("kind", ("boosted",))),
        fraction("share", (0.25, 1.0)),
    )
)


def measure(point: Point) -> dict[str, float]:
    """A smooth job: better with a middling rate, more data and depth; slower with depth and on small machines."""
    share = float(point["share"])
    rate = math.log10(float(point["rate"]))
    extra = float(point.get("depth", point.get("rounds", 1))) / 50.0
    quality = 0.9 - 0.1 * (rate + 2.0) ** 2 - 0.2 * (1.0 - share) ** 2 + 0.05 * extra
    seconds = 600.0 * share * (1.0 + extra) * (0.4 if point.get("machine") == "large" else 1.0)
    return {"accuracy": quality, "time": seconds}


GOAL = maximise("accuracy", "time <= 500", budget={"count": 60})


class StrategySuite(ABC):
    @abstractmethod
    def make(self) -> Strategy:
        """A new instance with options that suit a study of a dozen trials."""

    def tuner(self, space: Space = FINITE, goal: Goal = GOAL, seed: int = 0) -> Tuner:
        return Tuner(space, goal, self.make(), seed=seed)

    def play(
        self, tuner: Tuner, trials: int, job: Callable[[Point], dict[str, float]] = measure
    ) -> list[Point]:
        asked = []
        for _ in range(trials):
            answer = tuner.ask()
            if isinstance(answer, Finished):
                break
            asked.append(answer.point)
            tuner.tell(answer.number, job(answer.point))
        return asked

    def recommended(self, tuner: Tuner) -> Recommendation | None:
        """Returns the recommendation, a point of the space; there must be one once a measured point meets the goal."""
        found = tuner.recommend()
        assert found is not None or tuner.state.incumbent is None
        assert found is None or tuner.problem.space.contains(found.point)
        return found

    @pytest.mark.parametrize("space", [FINITE, MIXED], ids=["finite", "mixed"])
    def test_every_suggestion_is_a_new_point_of_the_space(self, space: Space) -> None:
        asked = self.play(self.tuner(space), 12)
        assert all(space.contains(point) for point in asked)
        assert len({point_key(point) for point in asked}) == len(asked) > 0

    @pytest.mark.parametrize("space", [FINITE, MIXED], ids=["finite", "mixed"])
    def test_a_study_resumed_from_its_history_at_any_moment_goes_on_as_if_never_stopped(
        self, space: Space
    ) -> None:
        tuner = self.tuner(space, seed=3)
        for step in range(9):
            again = Tuner.resume(space, GOAL, self.make(), tuner.observations, tuner.pending, seed=3)
            mine, other = tuner.ask(), again.ask()
            assert mine == other, f"at step {step}"
            if isinstance(mine, Finished):
                return
            if step % 4 != 3:  # now and then a trial is left running
                tuner.tell(mine.number, measure(mine.point))

    def test_the_same_seed_gives_the_same_study(self) -> None:
        assert self.play(self.tuner(seed=5), 8) == self.play(self.tuner(seed=5), 8)

    def test_parallel_workers_get_different_points(self) -> None:
        tuner = self.tuner()
        self.play(tuner, 6)
        answers = [tuner.ask() for _ in range(4)]
        points = [point_key(a.point) for a in answers if not isinstance(a, Finished)]
        assert len(set(points)) == len(points)

    def test_failing_and_broken_trials_do_not_stop_the_study(self) -> None:
        tuner = self.tuner()
        broken = [math.nan, math.inf, -math.inf]
        asked = []
        for i in range(9):
            answer = tuner.ask()
            if isinstance(answer, Finished):
                break
            asked.append(point_key(answer.point))
            if i % 3 == 0:
                tuner.tell(answer.number, outcome=PointOutcome.FAILED)
            elif i % 3 == 1:
                tuner.tell(answer.number, {"accuracy": broken[i % len(broken)], "time": math.nan})
            else:
                tuner.tell(answer.number, measure(answer.point))
        assert len(set(asked)) == len(asked) > 0
        self.recommended(tuner)

    def test_constant_measurements_and_zero_costs_are_ordinary(self) -> None:
        tuner = self.tuner(goal=minimise("cost", "accuracy >= 0.5", budget={"cost": 1.0}, at="any"))
        asked = self.play(tuner, 10, lambda point: {"accuracy": 0.7, "time": 0.0, "cost": 0.0})
        assert len({point_key(point) for point in asked}) == len(asked) > 0
        self.recommended(tuner)

    def test_a_goal_that_no_point_meets_still_gets_suggestions(self) -> None:
        tuner = self.tuner(goal=maximise("accuracy", "time <= 0.001", budget={"count": 60}))
        asked = self.play(tuner, 10)
        assert len(asked) > 0
        self.recommended(tuner)

    def test_it_finishes_when_every_point_was_tried(self) -> None:
        space = Space((Categorical("a", ("x", "y")), Ordinal("b", (1, 2)), fraction("share", (0.5, 1.0))))
        tuner = self.tuner(space, goal=maximise("accuracy", budget={"count": 100}))
        asked = self.play(tuner, 20, lambda p: {"accuracy": float(p["share"]) / float(p["b"]), "time": 1.0})
        assert 0 < len(asked) <= 8
        assert isinstance(tuner.ask(), Finished)

    def test_a_space_of_one_category_is_no_trouble(self) -> None:
        space = Space((Categorical("a", ("only",)), fraction("share", (0.5, 1.0))))
        tuner = self.tuner(space, goal=maximise("accuracy"))
        assert len(self.play(tuner, 5, lambda p: {"accuracy": float(p["share"]), "time": 1.0})) > 0

    def test_it_takes_points_that_it_never_asked_for(self) -> None:
        tuner = self.tuner()
        for point in list(FINITE.grid())[::5]:
            tuner.tell(point, measure(point))
        answer = tuner.ask()
        assert not isinstance(answer, Finished)
        assert FINITE.contains(answer.point)

    def test_a_recommendation_is_a_point_of_the_space(self) -> None:
        tuner = self.tuner()
        self.play(tuner, 14)
        for (
            point
        ) in FINITE.grid():  # whatever was not tried is told: now something meets the goal for certain
            tuner.tell(point, measure(point))
        assert self.recommended(tuner) is not None

"""`ask` and `tell` over plain values: the history, the budget and the pending points around a strategy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from easel.declare.goal import BudgetKind, Goal
from easel.declare.space import Point, Space, point_key
from easel.errors import Conflict, InvalidInput
from easel.records.study import Finished, Observation, PointOutcome, Recommendation, Suggestion
from easel.tune.objectives import WEIGHED, draw_weights, equal_weights, weighed
from easel.tune.recommend import clipped, settle_for_measured
from easel.tune.state import State, StudyProblem
from easel.tune.strategy import Strategy, make


class Tuner:
    """One study in memory. Everything it knows is `observations` and `pending`: store them to resume it."""

    def __init__(
        self,
        space: Space,
        goal: Goal,
        strategy: str | Strategy = "auto",
        *,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        earlier: Iterable[Observation] = (),
    ) -> None:
        self.problem = StudyProblem(space, goal, seed, dict(options or {}), tuple(earlier))
        self.strategy = make(strategy, **(options or {})) if isinstance(strategy, str) else strategy
        self.observations: list[Observation] = []
        self.pending: dict[int, Point] = {}
        self._next = 0
        self._state: tuple[tuple[int, tuple[int, ...]], State] | None = None

    @classmethod
    def resume(
        cls,
        space: Space,
        goal: Goal,
        strategy: str | Strategy,
        observations: Iterable[Observation],
        pending: Mapping[int, Point] | None = None,
        **others: Any,
    ) -> Tuner:
        """The tuner as it stood. Points that the space no longer contains are refused: start a new study
        and pass them as `earlier`, which keeps what still fits."""
        tuner = cls(space, goal, strategy, **others)
        asked: dict[int, Point] = dict(pending or {})
        for observation in observations:
            try:
                point = space.check(observation.point)
            except InvalidInput as error:
                raise Conflict(
                    f"the history does not fit the space ({error.message}); was the space changed? "
                    "Start a new study and give it this history as a warm start"
                ) from error
            tuner.observations.append(
                Observation(point, observation.values, observation.outcome, observation.number)
            )
        for number, waiting in asked.items():
            tuner.pending[number] = space.check(waiting)
        numbers = [*tuner.pending, *(o.number for o in tuner.observations if o.number is not None)]
        tuner._next = max(numbers, default=-1) + 1
        return tuner

    @property
    def state(self) -> State:
        """A value of the moment; the same object until something is asked or told, with what was derived from it."""
        now = (len(self.observations), tuple(sorted(self.pending)))
        if self._state is None or now != self._state[0]:
            pending = tuple(self.pending[number] for number in now[1])
            self._state = now, State(self.problem, tuple(self.observations), pending)
        return self._state[1]

    def ask(self) -> Suggestion | Finished:
        """The next point, which is pending from now on; ask again for more workers."""
        state = self.state
        if state.left <= 0:
            return Finished(f"the budget of {self.problem.goal.budget.amount:g} is spent")
        if self.problem.goal.budget.kind is BudgetKind.COUNT and state.left <= len(self.pending):
            return Finished("the last trials of the budget are running")
        weights = draw_weights(state) if self.problem.goal.others else {}
        choice = self.strategy.suggest(weighed(state, weights) if weights else state)
        if isinstance(choice, Finished):
            return choice
        point = self.problem.space.check(choice.point)
        why = {**choice.why, **{f"weight of {name}": weight for name, weight in weights.items()}}
        suggestion = Suggestion(point, self._next, state.left if math.isfinite(state.left) else None, why)
        self.pending[self._next] = point
        self._next += 1
        return suggestion

    def tell(
        self,
        trial: int | Point,
        values: Mapping[str, float] | None = None,
        outcome: PointOutcome = PointOutcome.COMPLETED,
    ) -> None:
        """Report a finished trial, by its number or (for a point never asked for) by its point.

        A second report for the same number changes nothing. NaN and infinite values count as not measured.
        """
        given = {} if values is None else {str(name): float(value) for name, value in values.items()}
        if isinstance(trial, Mapping):
            point = self.problem.space.check(trial)
            key = point_key(point)
            number = next((n for n, p in self.pending.items() if point_key(p) == key), None)
        else:
            number = trial
            if number not in self.pending:
                if any(o.number == number for o in self.observations):
                    return
                raise InvalidInput(f"no trial {number} was asked for; tell its point instead")
            point = dict(self.pending[number])
        if number is None:
            number, self._next = self._next, self._next + 1
        self.pending.pop(number, None)
        self.observations.append(Observation(point, given, outcome, number))

    def forget(self) -> None:
        """Drop what was derived from the present state; the next call derives it anew."""
        self._state = None

    def fail(self, trial: int | Point, values: Mapping[str, float] | None = None) -> None:
        self.tell(trial, values, PointOutcome.FAILED)

    def recommend(self) -> Recommendation | None:
        """Returns the point to use now; None while no trial has measured every objective."""
        goal = self.problem.goal
        measured = [np.isfinite(self.state.measurements(name)) for name in goal.objectives]
        if not np.all(measured, axis=0).any():
            return None
        found = self.strategy.recommend(
            weighed(self.state, equal_weights(goal)) if goal.others else self.state
        )
        if found is None:
            return None
        if goal.others:
            told = {name: value for name, value in found.predicted.items() if name != WEIGHED}
            found = replace(found, predicted=told)
        found = replace(found, point=self.problem.space.check(found.point))
        return settle_for_measured(self.state, clipped(self.state, found))

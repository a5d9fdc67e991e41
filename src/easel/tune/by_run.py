"""Define by run: the objective asks its trial for values as it goes, and the space is what it asked for.

easel.minimise(lambda trial: (trial.float("x", -1, 1) - 0.3) ** 2)
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from easel.clock import Clock
from easel.declare.dimensions import Categorical, Dimension, Float, Integer, Value
from easel.declare.goal import Goal
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import Observation, PointOutcome, Suggestion
from easel.tune.minimise import Evaluated, Measured, RunningTrial, StudyLoop, measure
from easel.tune.strategy import Strategy
from easel.tune.tuner import Tuner

T = TypeVar("T", bool, int, float, str)


class DefiningTrial(RunningTrial):
    """One trial. Each call names a value that the study may choose; the same name always has the same choices."""

    def __init__(
        self,
        suggestion: Suggestion,
        goal: Goal,
        others: list[dict[int, float]],
        elapsed: Callable[[], float],
        loop: DefiningLoop,
    ) -> None:
        super().__init__(suggestion, goal, others, elapsed, None)
        self._loop = loop
        self.params: dict[str, Value] = {}
        """What it was given so far."""

    def float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Returns a number between `low` and `high`; with `log`, orders of magnitude count alike."""
        return float(self._choose(Float(name, low, high, log)))

    def integer(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """Returns a whole number from `low` to `high`."""
        return int(self._choose(Integer(name, low, high, log)))

    def choice(self, name: str, values: Sequence[T]) -> T:
        """Returns one of the values, which have no order."""
        chosen: Any = self._choose(Categorical(name, tuple(values)))
        return chosen  # type: ignore[no-any-return]

    def _choose(self, dimension: Dimension) -> Value:
        if dimension.name not in self.params:
            self._loop.learn(dimension)
            given = self.suggestion.point.get(dimension.name)
            self.params[dimension.name] = (
                self._loop.drawn(dimension, self.suggestion.number) if given is None else given
            )
        elif self._loop.dimensions[dimension.name] != dimension:
            self._loop.learn(dimension)  # which refuses it
        return self.params[dimension.name]


Trial = DefiningTrial
"""The name by which objectives know it: `def loss(trial: easel.Trial) -> float`."""


class DefiningLoop(StudyLoop):
    """As `StudyLoop`, over a space that grows. A value that a trial did not ask for stands in its middle."""

    def __init__(
        self,
        f: Callable[[DefiningTrial], Measured],
        goal: Goal,
        strategy: str | Strategy,
        seed: int,
        options: Mapping[str, Any] | None,
        clock: Clock,
    ) -> None:
        self.function = f
        self.goal, self.seed = goal, seed
        self._made: Callable[..., Tuner] = lambda space, told, pending: Tuner.resume(
            space, goal, strategy, told, pending, seed=seed, options=options
        )
        self.dimensions: dict[str, Dimension] = {}
        self._told: list[tuple[int, dict[str, Value], dict[str, float], PointOutcome]] = []
        self._guard = threading.Lock()
        # Until the first trial has asked for something there is nothing to search.
        start = Tuner(Space((Float("nothing-yet", 0.0, 1.0),)), goal, "random", seed=seed)
        super().__init__(lambda point: 0.0, start, clock, None)

    def run(self, workers: int) -> str:
        """Runs the first trial alone, which says what there is to choose; then as many as there are workers."""
        first = Suggestion({}, 0)
        values, outcome, params = self.evaluate(first)
        self.finish(first, values, outcome, params)
        if not self.dimensions:
            raise InvalidInput(
                'the objective asked its trial for nothing: call trial.float("rate", 1e-4, 1, log=True), '
                "trial.integer or trial.choice; or give a space"
            )
        return super().run(workers)

    def learn(self, dimension: Dimension) -> None:
        """Adds a dimension; InvalidInput where the same name had other choices before."""
        with self._guard:
            known = self.dimensions.setdefault(dimension.name, dimension)
        if known != dimension:
            raise InvalidInput(
                f"{dimension.name!r} was asked for with other choices before ({known}): choices may not change "
                "during a study; give another name"
            )

    def drawn(self, dimension: Dimension, number: int) -> Value:
        """Returns a value for what is asked for the first time, by chance."""
        rng = np.random.default_rng([self.seed, zlib.crc32(dimension.name.encode()), number])
        return dimension.at(float(rng.random()))

    def evaluate(self, suggestion: Suggestion) -> Evaluated:
        def call(elapsed: Callable[[], float], others: list[dict[int, float]]) -> tuple[RunningTrial, Any]:
            trial = DefiningTrial(suggestion, self.goal, others, elapsed, self)
            return trial, lambda: self.function(trial)

        return measure(self, suggestion, call)

    def finish(
        self,
        suggestion: Suggestion,
        values: dict[str, float],
        outcome: PointOutcome,
        params: Mapping[str, Value],
    ) -> None:
        self._told.append((suggestion.number, dict(params), values, outcome))
        if not self.dimensions:
            self.check_first([Observation(p, v, o, n) for n, p, v, o in self._told])
            return
        with self._guard:
            known = dict(self.dimensions)
        running = {n: p for n, p in self.tuner.pending.items() if n != suggestion.number}
        told = [Observation(_filled(known, p), v, o, n) for n, p, v, o in self._told]
        pending = {n: _filled(known, p) for n, p in running.items()}
        self.tuner = self._made(Space(tuple(known.values())), told, pending)
        self.check_first(told)


def _filled(dimensions: Mapping[str, Dimension], point: Mapping[str, Value]) -> dict[str, Value]:
    return {name: point.get(name, dimension.at(0.5)) for name, dimension in dimensions.items()}

"""Optuna: its distributions to our dimensions and back, and our strategies as a sampler inside its studies.

`optuna.create_study(sampler=EaselSampler("fabulinus", space=space))`
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from easel.declare.dimensions import Categorical, Dimension, Float, Integer, Ordinal
from easel.declare.goal import Goal, maximise, minimise
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import Finished, Observation, PointOutcome
from easel.tune.tuner import Tuner


def from_optuna(distributions: Mapping[str, BaseDistribution]) -> Space:
    """A stepped float becomes an ordinal of its values."""
    return Space(tuple(_dimension(name, d) for name, d in distributions.items()))


def _dimension(name: str, distribution: BaseDistribution) -> Dimension:
    if isinstance(distribution, FloatDistribution):
        if distribution.step is None:
            return Float(name, distribution.low, distribution.high, log=distribution.log)
        count = round((distribution.high - distribution.low) / distribution.step) + 1
        return Ordinal(name, tuple(distribution.low + i * distribution.step for i in range(count)))
    if isinstance(distribution, IntDistribution):
        return Integer(
            name, distribution.low, distribution.high, log=distribution.log, step=distribution.step
        )
    if isinstance(distribution, CategoricalDistribution):
        choices = tuple(value for value in distribution.choices if value is not None)
        if len(choices) < len(distribution.choices):
            raise InvalidInput(f"{name!r} has None among its choices; write it as a string")
        return Categorical(name, choices)
    raise InvalidInput(f"{name!r}: {type(distribution).__name__} has no counterpart here")


def to_optuna(space: Space) -> dict[str, BaseDistribution]:
    """Optuna has no conditions, forbidden combinations or orders: those are refused or become categories."""
    if space.forbidden or any(d.when is not None for d in space.dimensions):
        raise InvalidInput("Optuna's distributions cannot express conditions or forbidden combinations")
    found: dict[str, BaseDistribution] = {}
    for d in space.dimensions:
        if isinstance(d, Float):
            found[d.name] = FloatDistribution(d.low, d.high, log=d.log)
        elif isinstance(d, Integer):
            found[d.name] = IntDistribution(d.low, d.target, log=d.log, step=d.step)
        else:
            found[d.name] = CategoricalDistribution(d.values)
    return found


class EaselSampler(BaseSampler):
    """Any of our strategies as an Optuna sampler.

    `space`: ours, when it has fidelities, resources or conditions; otherwise Optuna's own inferred space is used,
    whose first trials are random. `goal`: ours, when there are constraints; their quantities are read from the
    trial's user attributes of the same name (`trial.set_user_attr("cost", …)`).
    """

    def __init__(
        self,
        strategy: str = "auto",
        *,
        space: Space | None = None,
        goal: Goal | None = None,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.strategy = strategy
        self.space = space
        self.goal = goal
        self.seed = seed
        self.options = options
        self._random = RandomSampler(seed=seed)
        self._inferred = optuna.search_space.IntersectionSearchSpace()
        # A study's threads ask at once, and a trial's parameters are stored only after we answered: what was given
        # is remembered here, one answer at a time.
        self._given: dict[int, dict[str, Any]] = {}
        self._turn = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _turn=threading.Lock())

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        if self.space is not None:
            return {d.name: _loose(d) for d in self.space.dimensions}
        return {
            name: d
            for name, d in self._inferred.calculate(study).items()
            if not d.single() and not _has_none(d)
        }

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        space = self.space if self.space is not None else from_optuna(search_space)
        goal = self.goal if self.goal is not None else _goal(study)
        with self._turn:
            running = _running(study, space, trial.number, self._given)
            tuner = Tuner.resume(
                space,
                goal,
                self.strategy,
                _history(study, space, goal),
                running,
                seed=self.seed,
                options=self.options,
            )
            answer = tuner.ask()
            if isinstance(answer, Finished):
                return {}
            self._given = {n: p for n, p in self._given.items() if n in running}
            self._given[trial.number] = dict(answer.point)
        return dict(answer.point)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)


def _has_none(d: BaseDistribution) -> bool:
    """A choice of None is no value of ours: such a parameter is left to chance."""
    return isinstance(d, CategoricalDistribution) and None in d.choices


def _loose(d: Dimension) -> BaseDistribution:
    """What a trial's own `suggest_…` call must be compatible with."""
    if isinstance(d, Float):
        return FloatDistribution(d.low, d.high, log=d.log)
    if isinstance(d, Integer):
        return IntDistribution(d.low, d.target, log=d.log, step=d.step)
    return CategoricalDistribution(d.values)


def _goal(study: optuna.Study) -> Goal:
    if len(study.directions) != 1:
        raise InvalidInput("a study with several objectives needs a goal: EaselSampler(..., goal=…)")
    make = maximise if study.direction is StudyDirection.MAXIMIZE else minimise
    return make("value")


def _history(study: optuna.Study, space: Space, goal: Goal) -> Sequence[Observation]:
    outcomes = {
        TrialState.COMPLETE: PointOutcome.COMPLETED,
        TrialState.PRUNED: PointOutcome.STOPPED,
        TrialState.FAIL: PointOutcome.FAILED,
    }
    found = []
    for t in study.get_trials(deepcopy=False, states=tuple(outcomes)):
        point = {
            name: value for name, value in t.params.items() if name in {d.name for d in space.dimensions}
        }
        if not space.contains(point):
            continue
        values = {
            name: float(value)
            for name, value in t.user_attrs.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        value = t.value if t.values is not None else None
        if value is None and t.intermediate_values:
            value = t.intermediate_values[max(t.intermediate_values)]
        values[goal.quantity] = math.nan if value is None else float(value)
        found.append(Observation(point, values, outcomes[t.state], t.number))
    return found


def _running(
    study: optuna.Study, space: Space, own: int, given: Mapping[int, Mapping[str, Any]]
) -> dict[int, Any]:
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    points = {t.number: t.params or given.get(t.number, {}) for t in running if t.number != own}
    return {number: point for number, point in points.items() if space.contains(point)}

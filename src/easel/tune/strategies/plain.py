"""Strategies without a model: uniform random, Latin hypercube, grid. Also what others fall back to."""

from __future__ import annotations

import numpy as np

from easel.records.study import Finished, Recommendation
from easel.tune.state import State
from easel.tune.strategy import PointChoice

EXHAUSTED = Finished("every point of the space has been tried")
# A continuous space is never exhausted; a finite one that refuses this many draws in a row nearly is.
_DRAWS = 200


def random_choice(
    state: State, *, full_only: bool = False, purpose: str = "random"
) -> PointChoice | Finished:
    """A uniform draw from the points not yet taken."""
    rng = state.rng(purpose)
    grid = state.problem.grid
    if grid is None:
        for _ in range(_DRAWS):
            point = state.problem.space.sample(rng.random)
            if full_only:
                point = state.problem.space.at_target(point)
            if state.is_free(point):
                return PointChoice(point, {"reason": "random"})
        return EXHAUSTED
    free = state.free(grid)
    if full_only:
        free &= state.full(grid)
    left = np.flatnonzero(free)
    if not len(left):
        return EXHAUSTED
    return PointChoice(grid.points[int(rng.choice(left))], {"reason": "random"})


def observed_best(state: State) -> Recommendation | None:
    """The best observation that meets the constraints, as measured."""
    if state.incumbent is None:
        return None
    observation = state.observations[state.incumbent]
    return Recommendation(observation.point, probability=1.0, observed=state.values(observation))


class Random:
    def suggest(self, state: State) -> PointChoice | Finished:
        return random_choice(state)

    def recommend(self, state: State) -> Recommendation | None:
        return observed_best(state)


class Latin:
    """Successive Latin hypercubes of eight points."""

    def suggest(self, state: State) -> PointChoice | Finished:
        point = state.next_in_design()
        return random_choice(state) if point is None else PointChoice(point, {"reason": "latin hypercube"})

    def recommend(self, state: State) -> Recommendation | None:
        return observed_best(state)


class GridSearch:
    """Every point in order, `Float` dimensions at `per_float` values."""

    def __init__(self, per_float: int = 5) -> None:
        self.per_float = per_float

    def suggest(self, state: State) -> PointChoice | Finished:
        for point in state.problem.space.grid(self.per_float):
            if state.is_free(point):
                return PointChoice(point, {"reason": "grid"})
        return EXHAUSTED

    def recommend(self, state: State) -> Recommendation | None:
        return observed_best(state)

"""What a study found, for people: the front between its objective and the other quantities that matter, and what its
models believe along one or two dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from easel.declare.dimensions import Value
from easel.declare.goal import At, Direction
from easel.declare.space import Point, Space
from easel.errors import InvalidInput
from easel.records.study import Estimate, Observation, PointOutcome, Recommendation
from easel.tune.belief import Beliefs
from easel.tune.recommend import clip, clipped
from easel.tune.state import State
from easel.tune.surrogate import learn

_PER_FLOAT = 33
_MOST_LEVELS = 65


def front(state: State) -> list[Observation]:
    """Observations that meet the constraints and that no other such observation beats in everything.

    "Everything" is each objective and each quantity in the goal's `also`; an observation that lacks one of them takes
    no part. Best in the first objective first.
    """
    goal = state.problem.goal
    judged = {**goal.objectives, **goal.also}
    signs = {name: 1.0 if d is Direction.MAXIMISE else -1.0 for name, d in judged.items()}
    scored: list[tuple[tuple[float, ...], Observation]] = []
    for observation in state.observations:
        values = state.values(observation)
        if observation.outcome is not PointOutcome.COMPLETED or not goal.meets(values):
            continue
        if goal.at is At.FULL and not state.problem.space.is_target(observation.point):
            continue
        score = tuple(sign * values.get(name, math.nan) for name, sign in signs.items())
        if all(math.isfinite(v) for v in score):
            scored.append((score, observation))
    kept = [(s, o) for s, o in scored if not any(_beats(other, s) for other, _ in scored)]
    return [o for _, o in sorted(kept, key=lambda entry: entry[0], reverse=True)]


def _beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return all(x >= y for x, y in zip(a, b, strict=True)) and a != b


@dataclass(frozen=True)
class DimensionProfile:
    """The models along one dimension, all else held at `fixed`: an estimate of each quantity at each of `values`."""

    fixed: Point
    values: tuple[Value, ...]
    of: dict[str, list[Estimate]]
    probability: list[float]


@dataclass(frozen=True)
class Region:
    """Along two dimensions: how likely the constraints hold and the objective's median, `[y][x]`; None where the
    combination is forbidden."""

    fixed: Point
    xs: tuple[Value, ...]
    ys: tuple[Value, ...]
    probability: list[list[float | None]]
    objective: list[list[float | None]]


def with_predictions(state: State, found: Recommendation) -> Recommendation:
    """A recommendation of what was measured, with what the models make of that point; its probability stays."""
    if found.predicted:
        return found
    beliefs = _beliefs(state, [found.point])
    chance = float(beliefs.probability()[0]) if found.probability is None else found.probability
    return clipped(state, replace(found, predicted=beliefs.estimates(0), probability=chance))


def slice_along(state: State, name: str, around: Point) -> DimensionProfile:
    space = state.problem.space
    points = {v: with_value(space, around, name, v) for v in _levels(space, name)}
    kept = {v: p for v, p in points.items() if not space.is_forbidden(p)}
    beliefs = _beliefs(state, list(kept.values()))
    of = {q: [clip(state, q, belief.at(i)) for i in range(len(kept))] for q, belief in beliefs.of.items()}
    fixed = {key: value for key, value in around.items() if key != name}
    return DimensionProfile(fixed, tuple(kept), of, [float(p) for p in beliefs.probability()])


def region_over(state: State, x: str, y: str, around: Point) -> Region:
    if x == y:
        raise InvalidInput("a region needs two different dimensions")
    space = state.problem.space
    xs, ys = _levels(space, x), _levels(space, y)
    points = [with_value(space, with_value(space, around, x, a), y, b) for b in ys for a in xs]
    ok = [not space.is_forbidden(point) for point in points]
    beliefs = _beliefs(state, [p for p, good in zip(points, ok, strict=True) if good])
    chance = iter(float(p) for p in beliefs.probability())
    median = iter(float(m) for m in beliefs.of[state.problem.goal.quantity].median())
    rows = [
        [(next(chance), next(median)) if ok[i * len(xs) + j] else None for j in range(len(xs))]
        for i in range(len(ys))
    ]
    fixed = {key: value for key, value in around.items() if key not in (x, y)}
    return Region(
        fixed,
        xs,
        ys,
        [[cell and cell[0] for cell in row] for row in rows],
        [[cell and cell[1] for cell in row] for row in rows],
    )


def _beliefs(state: State, points: Sequence[Point]) -> Beliefs:
    if not state.observations:
        raise InvalidInput("nothing was measured yet: the models have nothing to show")
    return learn(state).beliefs(state.problem.codec.table(points))


def _levels(space: Space, name: str) -> tuple[Value, ...]:
    """Every value, or evenly spaced ones of a long range."""
    levels = tuple(space[name].levels(_PER_FLOAT))
    if len(levels) <= _MOST_LEVELS:
        return levels
    step = (len(levels) - 1) / (_PER_FLOAT - 1)
    return tuple(levels[round(i * step)] for i in range(_PER_FLOAT))


def with_value(space: Space, point: Point, name: str, value: Value) -> dict[str, Value]:
    """The point with another value; dimensions that then apply and were absent stand in their middle."""
    wanted = {**point, name: value}
    found: dict[str, Value] = {}
    for dimension in space.dimensions:
        if space.active(dimension, found):
            found[dimension.name] = wanted.get(dimension.name, dimension.at(0.5))
    if name not in found:
        raise InvalidInput(f"{name!r} does not apply where the other dimensions are held")
    return found

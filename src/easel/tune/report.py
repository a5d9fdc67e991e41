"""What a study found, for people: the front between its objective and the other quantities that matter."""

from __future__ import annotations

import math

from easel.declare.goal import At, Direction
from easel.records.study import Observation, Outcome
from easel.tune.state import State


def front(state: State) -> list[Observation]:
    """Observations that meet the constraints and that no other such observation beats in everything.

    "Everything" is the objective and each quantity in the goal's `also`; an observation that lacks one of them does not
    take part. Best objective first.
    """
    goal = state.problem.goal
    signs = {goal.quantity: goal.sign}
    signs |= {name: 1.0 if d is Direction.MAXIMISE else -1.0 for name, d in goal.also.items()}
    scored: list[tuple[tuple[float, ...], Observation]] = []
    for observation in state.observations:
        values = state.values(observation)
        if observation.outcome is not Outcome.COMPLETED or not goal.meets(values):
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

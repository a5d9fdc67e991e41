"""Several objectives at once: each suggestion looks for the best point of one weighing of them (ParEGO).

With weights drawn anew for every suggestion, the points that were measured spread along the front between the
objectives. J. Knowles, "ParEGO", IEEE Transactions on Evolutionary Computation 10(1), 2006, equations 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from easel.declare.goal import Direction, Goal
from easel.records.study import Observation
from easel.tune.belief import Array, forward
from easel.tune.state import State

WEIGHED = "weighed objectives"
"""The quantity that stands for all objectives together; smaller is better."""
RHO = 0.05
"""How much the sum counts beside the largest term: it keeps points out that are merely as good in the worst of them."""


def draw_weights(state: State) -> dict[str, float]:
    """Returns a weight for each objective, uniform over all that sum to 1; another one at every step of the study."""
    drawn = state.rng("weights").dirichlet(np.ones(len(state.problem.goal.objectives)))
    return dict(zip(state.problem.goal.objectives, map(float, drawn), strict=True))


def equal_weights(goal: Goal) -> dict[str, float]:
    return dict.fromkeys(goal.objectives, 1.0 / len(goal.objectives))


def weighed(state: State, weights: Mapping[str, float]) -> State:
    """Returns the study with one objective in place of several: the augmented Chebyshev loss under these weights.

    Each objective counts by where it lies between the best and the worst that was measured; times and costs by their
    logarithms.
    """
    goal = state.problem.goal
    seen = (*state.observations, *state.problem.earlier)
    losses = _losses(state, seen, weights)
    told = [
        replace(o, values={**o.values, WEIGHED: float(loss)}) for o, loss in zip(seen, losses, strict=True)
    ]
    one = replace(goal, quantity=WEIGHED, direction=Direction.MINIMISE, others={}, also={})
    count = len(state.observations)
    problem = replace(state.problem, goal=one, earlier=tuple(told[count:]))
    return State(problem, tuple(told[:count]), state.pending)


def _losses(state: State, seen: Sequence[Observation], weights: Mapping[str, float]) -> Array:
    """`(n,)`: NaN where an objective was not measured."""
    if not seen:
        return np.zeros(0)
    whole = State(replace(state.problem, earlier=()), tuple(seen))
    terms = []
    for name, direction in state.problem.goal.objectives.items():
        values = forward(name, whole.measurements(name))
        values = -values if direction is Direction.MAXIMISE else values
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        terms.append(weights[name] * (values - low) / max(high - low, 1e-12))
    stacked = np.array(terms)
    return np.asarray(stacked.max(axis=0) + RHO * stacked.sum(axis=0))

"""What may be recommended: never a guess for something measured, and no prediction that cannot be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from easel.declare.goal import COST, TIME, Constraint
from easel.declare.space import point_key
from easel.records.study import Estimate, Observation, PointOutcome, Recommendation
from easel.tune.state import State

_SHARES = re.compile(
    r"(^|[/_.\-])(acc|accuracy|precision|recall|f1|auc|auroc|iou|dice|map|top1|top5|error_rate)([/_.\-@]|$)"
)
"""Names of quantities that are shares: they lie between 0 and 1, or 0 and 100."""


@dataclass(frozen=True)
class NearMiss:
    """The measured point that comes nearest to meeting the constraints, and those that it misses."""

    observation: Observation
    missed: tuple[Constraint, ...]


def settle_for_measured(state: State, found: Recommendation) -> Recommendation:
    """`found`, unless a point was measured that meets the constraints and `found` is only hoped to be better.

    The best measured point is left for an untried one only where that is better at its pessimistic end: its objective
    beats the measured one, and every constraint holds, at the poor end of the central 90 %.
    """
    if state.incumbent is None:
        return found
    best = state.observations[state.incumbent]
    if point_key(best.point) == point_key(found.point):
        return replace(found, observed=state.values(best), probability=1.0)
    if state.observed_at(found.point) is None and _is_surely_better(state, found, best):
        return found
    return Recommendation(best.point, probability=1.0, observed=state.values(best))


def _is_surely_better(state: State, found: Recommendation, best: Observation) -> bool:
    goal = state.problem.goal
    objective = found.predicted.get(goal.quantity)
    if (
        objective is None or goal.others
    ):  # of several objectives what was measured is recommended, never a guess
        return False
    poor = objective.low if goal.sign > 0 else objective.high
    if not goal.sign * poor > goal.sign * state.values(best)[goal.quantity]:
        return False
    for constraint in goal.constraints:
        estimate = found.predicted.get(constraint.quantity)
        if estimate is None:
            return False
        if not constraint.holds(
            {constraint.quantity: estimate.low if constraint.at_least else estimate.high}
        ):
            return False
    return True


def clipped(state: State, found: Recommendation) -> Recommendation:
    """The recommendation with predictions inside what the quantities can be."""
    kept = {name: clip(state, name, estimate) for name, estimate in found.predicted.items()}
    return replace(found, predicted=kept)


def clip(state: State, quantity: str, estimate: Estimate) -> Estimate:
    low, high = possible(state, quantity)
    return Estimate(*(min(max(value, low), high) for value in (estimate.median, estimate.low, estimate.high)))


def possible(state: State, quantity: str) -> tuple[float, float]:
    """Returns between which values a quantity can lie: an accuracy from 0 to 1 (or 100), time and cost from 0."""
    if quantity in (TIME, COST, "memory"):
        return 0.0, math.inf
    if not _SHARES.search(quantity.lower()):
        return -math.inf, math.inf
    seen = state.measurements(quantity)
    seen = seen[np.isfinite(seen)]
    if not len(seen) or seen.min() < 0.0 or seen.max() > 100.0:
        return -math.inf, math.inf
    return 0.0, 1.0 if seen.max() <= 1.0 else 100.0


def nearest(state: State) -> NearMiss | None:
    """Returns the completed point, at a fidelity where the goal is judged, that misses its constraints least.

    Each miss counts as a share of its bound; ties go to the better objective. None where nothing was measured.
    """
    if state.incumbent is not None:
        return NearMiss(state.observations[state.incumbent], ())
    goal, space = state.problem.goal, state.problem.space
    ranked = []
    for i, observation in enumerate(state.observations):
        values = state.values(observation)
        if observation.outcome is not PointOutcome.COMPLETED:
            continue
        if not all(math.isfinite(values.get(name, math.nan)) for name in goal.objectives):
            continue
        value = values[goal.quantity]
        judged = goal.at.value == "any" or space.is_target(observation.point)
        missed = tuple(constraint for constraint in goal.constraints if not constraint.holds(values))
        gaps = [_gap(constraint, values.get(constraint.quantity, math.nan)) for constraint in missed]
        ranked.append((not judged, sum(gaps), -goal.sign * value, i, missed))
    if not ranked:
        return None
    *_, i, missed = min(ranked, key=lambda entry: entry[:4])
    return NearMiss(state.observations[i], missed)


def _gap(constraint: Constraint, value: float) -> float:
    if not math.isfinite(value):
        return 1e9
    return abs(value - constraint.bound) / max(abs(constraint.bound), 1e-12)

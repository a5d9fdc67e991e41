"""Which dimensions of a study matter: the total effect of each on what the models predict (Sobol', after Jansen)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.declare.space import Point, Space
from easel.errors import InvalidInput
from easel.tune.report import with_value
from easel.tune.state import State
from easel.tune.surrogate import learn

_POINTS = 256
_FEWEST = 3


@dataclass(frozen=True)
class DimensionShare:
    """`share`: of the predicted variation, how much stays when every other dimension is held; 0 to 1.

    Dimensions that act together count in each of their shares, so shares may add up to more than 1.
    """

    dimension: str
    share: float


def importances(state: State, quantity: str | None = None) -> list[DimensionShare]:
    """Returns the share of each dimension in the predicted variation of a quantity, the largest first.

    Fidelities are held at their targets: what is asked is which settings matter for a whole run. A dimension that does
    not apply everywhere counts where it does.
    """
    problem = state.problem
    wanted = problem.goal.quantity if quantity is None else quantity
    if len(state.observations) < _FEWEST:
        raise InvalidInput(f"importances need at least {_FEWEST} measured points")
    rng = state.fixed_rng("importances")
    space = problem.space
    points, donors = (_drawn(space, rng) for _ in range(2))
    names = [d.name for d in space.dimensions if d not in space.fidelities]
    swapped = {name: _swapped(space, points, donors, name) for name in names}
    flat = [*points, *(point for pairs in swapped.values() for _, point in pairs)]
    beliefs = learn(state).beliefs(problem.codec.table(flat))
    if wanted not in beliefs.of:
        raise InvalidInput(f"no model of {wanted!r}; there are models of {', '.join(sorted(beliefs.of))}")
    predicted = beliefs.of[wanted].mean
    base, rest = predicted[: len(points)], predicted[len(points) :]
    whole = float(base.var())
    found, at = [], 0
    for name, pairs in swapped.items():
        before = base[[i for i, _ in pairs]]
        effect = float(np.square(rest[at : at + len(pairs)] - before).sum()) / (2 * len(points))
        at += len(pairs)
        share = effect / whole if whole > 1e-18 * (1.0 + float(base.mean()) ** 2) else 0.0
        found.append(DimensionShare(name, min(1.0, share)))
    return sorted(found, key=lambda one: -one.share)


def _drawn(space: Space, rng: np.random.Generator) -> list[Point]:
    """Returns random points at full fidelity."""
    drawn = (space.at_target(space.sample(rng.random)) for _ in range(_POINTS))
    return [point for point in drawn if not space.is_forbidden(point)]


def _swapped(space: Space, points: list[Point], donors: list[Point], name: str) -> list[tuple[int, Point]]:
    """Returns the points to which the dimension applies, each with the value that another random point has there."""
    values = [donor[name] for donor in donors if name in donor]
    found: list[tuple[int, Point]] = []
    for i, point in enumerate(points):
        if name not in point or not values:
            continue
        changed = with_value(space, point, name, values[i % len(values)])
        if not space.is_forbidden(changed):
            found.append((i, changed))
    return found

"""How far the slices of a trial go, and what it has cost by then. Pure."""

from __future__ import annotations

from functools import cache

import numpy as np

from easel.match.registry import all_families
from easel.optimise.arrays import Array

RUNGS = (1 / 12, 1 / 4, 1 / 2, 1.0)
"""How far slices go: of the epochs of a network, of the rounds of trees, of the examples of other families."""
MOST_FIRST, STEP = 4_000, 4
"""Where the first slice would learn from more examples, there is another before it, of a fourth of them, and so on."""


@cache
def rungs_for(examples: int) -> tuple[float, ...]:
    """Returns how far the slices of a trial on so many examples go, as shares of the whole: the last is 1."""
    found: tuple[float, ...] = RUNGS
    while found[0] * examples > MOST_FIRST:
        found = (found[0] / STEP, *found)
    return found


def cost_until(share: float, family: str = "", examples: int = 0) -> float:
    """Returns what a trial has cost at `share` of it, where one that is run at once costs 1.

    What goes on from a checkpoint costs in proportion, with a tenth of it to begin with. What trains anew on a larger
    share of the examples has paid for every slice until there, each by the family's own power of its examples.
    """
    alone = cost_alone(share, family)
    if alone is None:
        return 0.1 + 0.9 * share
    before = (rung for rung in rungs_for(examples) if rung < share * (1.0 - 1e-9))
    return alone + sum(cost_alone(rung, family) or 0.0 for rung in before)


def cost_alone(share: float, family: str) -> float | None:
    """Returns what one slice costs that trains anew; None where the family goes on from a checkpoint, or is unknown."""
    known = all_families().get(family)
    return None if known is None or known.continues else float(share**known.power)


@cache
def costs_until(family: str, examples: int) -> Array:
    """`(E,)`: `cost_until` at each rung."""
    found = np.array([cost_until(rung, family, examples) for rung in rungs_for(examples)])
    found.setflags(write=False)
    return found

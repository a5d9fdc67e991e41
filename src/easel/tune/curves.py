"""Early stopping: is a running trial's curve so poor that it is not worth its budget?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

Curve = Mapping[int, float]


def hopeless(
    mine: Curve, others: Sequence[Curve], *, larger_is_better: bool, least: int = 5, grace: int = 1
) -> bool:
    """The median rule: at its latest step the trial's best value so far is worse than the median of the others'.

    Each other trial counts with its best value up to that step. Never before `grace` steps, nor with fewer than
    `least` other curves that reach the step; NaN counts as the worst.
    """
    if len(mine) <= grace:
        return False
    step = max(mine)
    sign = 1.0 if larger_is_better else -1.0

    def best(curve: Curve) -> float:
        values = [sign * v for s, v in curve.items() if s <= step and not math.isnan(v)]
        return max(values, default=-math.inf)

    rivals = [best(curve) for curve in others if curve and max(curve) >= step]
    return len(rivals) >= least and best(mine) < median(rivals)

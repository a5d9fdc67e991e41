"""How much of a best score is the luck of the choice: candidates chosen on some examples, scored on the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.match.judge import score
from easel.match.kinds import Task

RESAMPLED = 60
FEWEST = 20


def choice_luck(
    task: Task,
    metric: str,
    truth: NDArray[Any],
    members: Mapping[str, NDArray[Any]],
    seed: int = 0,
    by_example: NDArray[np.intp] | None = None,
) -> float | None:
    """Returns by how much the best of these candidates scores too high, being the best by the same examples.

    Examples are resampled: the best by those drawn is scored on those that were not (bootstrap bias corrected
    cross-validation, Tsamardinos et al. 2018). Never below 0; None where there are too few examples. `by_example`
    `(n, turns)`: the rows of each example, where it was answered more than once.
    """
    of = np.arange(len(truth))[:, None] if by_example is None else by_example
    count = len(of)
    if count < FEWEST or len(members) < 2:
        return None
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(RESAMPLED):
        chosen = rng.integers(count, size=count)
        left = np.setdiff1d(np.arange(count), chosen)
        if len(left) < 2:
            continue
        drawn, rest = of[chosen].ravel(), of[left].ravel()
        inside = {
            name: score(task, metric, truth[drawn], answers[drawn]) for name, answers in members.items()
        }
        best = max(inside, key=lambda name: inside[name])
        outside = score(task, metric, truth[rest], members[best][rest])
        if np.isfinite(inside[best]) and np.isfinite(outside):
            gaps.append(inside[best] - outside)
    return max(0.0, float(np.mean(gaps))) if gaps else None


def prefers_mixture(mixture: float, best: float, luck: float | None) -> bool:
    """Whether a mixture of candidates is served although `best`, the best single one's score, may be higher.

    A single model that leads by no more than the luck of the choice is as likely to be worse on new examples, and a
    mixture errs less from one set of examples to the next.
    """
    return mixture >= best - (luck or 0.0)

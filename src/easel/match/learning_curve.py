"""What more examples would bring: scores on growing shares of the examples, continued to twice as many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARES = (0.125, 0.25, 0.5, 1.0)
BENDS = np.linspace(0.1, 1.5, 8)
"""Exponents of the power law that are tried."""
RESAMPLED = 200
TELLING = 3
"""Points below which nothing is foretold."""


@dataclass(frozen=True)
class Foretold:
    """The gain in score by twice the examples, with the central 90 % of what resampled examples say."""

    gain: float
    low: float
    high: float


def continued(counts: Sequence[int], errors: Sequence[float], to: int) -> float:
    """The error at `to` examples by the law e + b · n^-c with e, b ≥ 0 that is nearest to what was measured."""
    from scipy.optimize import nnls

    n, measured = np.asarray(counts, float), np.asarray(errors, float)
    best, told = np.inf, float(measured[-1])
    for bend in BENDS:
        scaled = (n / n[-1]) ** -bend
        # What was measured on more examples counts more: it is nearer to what is foretold.
        weight = np.sqrt(n / n[-1])
        found, left = nnls(np.stack([np.ones_like(n), scaled], 1) * weight[:, None], measured * weight)
        if left < best - 1e-12:
            best = left
            told = float(found[0] + found[1] * (to / n[-1]) ** -bend)
    return told


def foretell(
    losses: Mapping[int, NDArray[np.float64]], seed: int = 0, resampled: int = RESAMPLED
) -> Foretold | None:
    """`losses[n]` are those of the same held-out examples by a model that saw n others. None: too few points."""
    counts = sorted(losses)
    if len(counts) < TELLING or len(losses[counts[0]]) < 10:
        return None
    table = np.stack([losses[n] for n in counts])
    rng = np.random.default_rng(seed)
    gains = []
    for _ in range(resampled):
        rows = rng.integers(table.shape[1], size=table.shape[1])
        means = table[:, rows].mean(1)
        gains.append(float(means[-1]) - continued(counts, means.tolist(), 2 * counts[-1]))
    whole = table.mean(1)
    gain = float(whole[-1]) - continued(counts, whole.tolist(), 2 * counts[-1])
    low, high = np.quantile(gains, [0.05, 0.95])
    return Foretold(gain, float(low), float(high))

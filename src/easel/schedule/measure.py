"""Loss curves: how far the tenants are from the best they could have, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A falling step function: `loss[j]` holds from `time[j]` until `time[j+1]`."""

    time: Array
    loss: Array

    def at(self, times: Array) -> Array:
        """The loss at each of `times` (not before the first)."""
        place = np.searchsorted(self.time, times, side="right") - 1
        return np.asarray(self.loss[place.clip(min=0)])

    def area(self, horizon: float) -> float:
        """Mean loss over `[0, horizon]`: the area under the curve divided by the horizon."""
        inside = self.time < horizon
        edges = np.append(self.time[inside], horizon)
        return float((np.diff(edges) * self.loss[inside]).sum() / horizon)

    def reaches(self, loss: float) -> float:
        """When the loss first is `loss` or less; infinite if never."""
        there = np.flatnonzero(self.loss <= loss + 1e-12)
        return float(self.time[there[0]]) if len(there) else np.inf


def mean_curve(curves: Sequence[LossCurve], horizon: float, points: int = 400) -> LossCurve:
    """The mean over runs, on a common grid of `[0, horizon]`."""
    grid = np.linspace(0.0, horizon, points)
    return LossCurve(grid, np.mean([c.at(grid) for c in curves], axis=0))


def worst_curve(curves: Sequence[LossCurve], horizon: float, points: int = 400) -> LossCurve:
    """The largest over runs, on a common grid."""
    grid = np.linspace(0.0, horizon, points)
    return LossCurve(grid, np.max([c.at(grid) for c in curves], axis=0))


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

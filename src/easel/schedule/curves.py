"""Learning curves: what every candidate reaches for every tenant after each slice, and what it has cost by then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array


@dataclass(frozen=True, eq=False)
class CurveTable:
    """`quality` and `cost` `(n, K, E)`, `cost` counted from the trial's beginning; NaN where not run.

    `rungs` `(E,)` says how far each slice goes (epochs, rounds, shares of the data); the last is the whole trial.
    """

    tenants: tuple[str, ...]
    candidates: tuple[str, ...]
    rungs: Array
    quality: Array
    cost: Array

    def __post_init__(self) -> None:
        shape = (len(self.tenants), len(self.candidates), len(self.rungs))
        if self.quality.shape != shape or self.cost.shape != shape:
            raise InvalidInput(
                f"quality {self.quality.shape} and cost {self.cost.shape} must both be {shape}"
            )
        if len(self.rungs) == 0 or (np.diff(self.rungs) <= 0).any() or self.rungs[0] <= 0:
            raise InvalidInput("rungs must rise from above zero: give for example 1, 3, 9, 27")
        with np.errstate(invalid="ignore"):
            if (np.diff(self.cost, axis=2) < 0).any():
                raise InvalidInput("costs are counted from the beginning of a trial: they cannot fall")

    def rows(self, chosen: Iterable[int]) -> Self:
        which = list(chosen)
        names = tuple(self.tenants[i] for i in which)
        return type(self)(names, self.candidates, self.rungs, self.quality[which], self.cost[which])

    def at_rungs(self, chosen: Iterable[int]) -> Self:
        """Returns only these columns of `rungs`: coarser slices of the same trials."""
        which = list(chosen)
        return type(self)(
            self.tenants,
            self.candidates,
            self.rungs[which],
            self.quality[:, :, which],
            self.cost[:, :, which],
        )

    @property
    def best(self) -> Array:
        """`(n,)`: the highest quality of each tenant at any rung; NaN where nothing was run."""
        gone = np.isnan(self.quality)
        top = np.where(gone, -np.inf, self.quality).max((1, 2))
        return np.where(gone.all((1, 2)), np.nan, top)

    @property
    def total_cost(self) -> float:
        """Returns the cost of everything that can be run, each trial to its last known rung."""
        return float(np.where(np.isnan(self.cost), 0.0, self.cost).max(2).sum())

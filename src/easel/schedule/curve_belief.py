"""What is believed of a tenant's learning curves: quality and cost of every candidate at every rung.

Qualities lie in [0, 1] and are modelled as `arcsin √q`, costs as logarithms: one Gaussian over the cells candidate ×
rung each. Every slice that ends is one observation; it moves the same candidate's later rungs most, and the curves of
similar candidates with it. Freeze–thaw: a curve left at one rung and continued later is one set of cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.optimise.finite import FiniteGP
from easel.schedule.cells import CellPrior, ColdCells, learn_cells
from easel.schedule.curves import CurveTable
from easel.schedule.prior import Prior
from easel.schedule.scale import in_angles

DOF = 30.0
"""Degrees of freedom of a tenant's own spread."""
REPEAT = 1e-6
"""Variance of a cell measured twice."""
QUALITY_NOISE, COST_NOISE = 1e-4, 1e-3
"""Variance of one cell beyond what its neighbours explain."""
LEAST_STEP = 0.2
"""A slice costs at least this share of what earlier tenants' slices cost, whatever was extrapolated."""

Whole = npt.NDArray[np.int64]


def warped(quality: Array) -> Array:
    """`arcsin √q`: shares have about the same spread everywhere on this scale."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(quality, 0.0, 1.0))))


def unwarped(w: Array) -> Array:
    return np.asarray(np.sin(np.clip(w, 0.0, np.pi / 2.0)) ** 2)


@dataclass(frozen=True, eq=False)
class CurvePrior:
    """What a new tenant's curves are expected to be like."""

    rungs: Array
    quality: CellPrior
    log_cost: CellPrior

    def moved(self, quality: Array, log_cost: Array) -> CurvePrior:
        """Returns the prior for a tenant whose candidates end so much higher, as an angle, and cost that much more.

        `quality` is `(K,)`, `log_cost` `(K,)` or, where it differs from rung to rung, `(K, E)`.
        """
        E = len(self.rungs)
        dearer = log_cost.ravel() if log_cost.ndim == 2 else np.repeat(log_cost, E)
        return CurvePrior(
            self.rungs,
            replace(self.quality, mean=np.clip(self.quality.mean + np.repeat(quality, E), 0.02, np.pi / 2)),
            replace(self.log_cost, mean=self.log_cost.mean + dearer),
        )

    def belief(self) -> CurveBelief:
        E = len(self.rungs)
        K = len(self.quality.mean) // E
        steps = np.exp(self.log_cost.mean.reshape(K, E))
        return CurveBelief(
            self.rungs,
            FiniteGP.prior(self.quality.mean, self.quality.cov, REPEAT, DOF),
            FiniteGP.prior(self.log_cost.mean, self.log_cost.cov, REPEAT),
            np.full(K, -1),
            np.zeros(K),
            np.diff(np.log(steps), axis=1, prepend=-np.inf),
        )


def learn_curves(
    history: CurveTable,
    features: Array | None = None,
    promise: Array | None = None,
    cost: Array | None = None,
    final: Prior | None = None,
) -> CurvePrior:
    """Learns from earlier tenants' curves, whole or in part.

    `features` `(K, d)` say which candidates are alike. Where there is little history, `promise` `(K,)` is the final
    quality and `cost` `(K,)` the cost of the whole trial to go by; `final` in its place what is believed of the final
    qualities together, learned from whole trials.
    """
    K, share = len(history.candidates), history.rungs / history.rungs[-1]
    with np.errstate(divide="ignore"):
        log_cost = np.log(history.cost)
    log_cost[~np.isfinite(log_cost)] = np.nan
    if final is None:
        cold_quality = _cold_quality(np.full(K, 0.7) if promise is None else promise, share)
    else:
        cold_quality = _climbing(in_angles(final), share)
    typical = np.full(K, np.exp(np.nanmean(log_cost[:, :, -1])) if _any(log_cost[:, :, -1]) else 1.0)
    cold_cost = _cold_cost(typical if cost is None else cost, share)
    return CurvePrior(
        history.rungs,
        learn_cells(warped(history.quality), cold_quality, features),
        learn_cells(log_cost, cold_cost, features),
    )


def _any(values: Array) -> bool:
    return bool(np.isfinite(values).any())


def _cold_quality(promise: Array, share: Array) -> ColdCells:
    """Curves rise by a third of a radian at most; tenants differ by their level, candidates by their climb."""
    missing = 1.0 - share**0.3
    mean = np.maximum(warped(promise)[:, None] - 0.35 * missing[None, :], 0.05)
    level = 0.2**2 + 0.1**2 * np.outer(missing, missing)
    own = 0.1**2 + 0.1**2 * np.outer(missing, missing)
    return ColdCells(mean, level, own, QUALITY_NOISE)


def _climbing(final: Prior, share: Array) -> ColdCells:
    """Curves that end at what is believed of the final qualities, and rise until there as they usually do."""
    missing = 1.0 - share**0.3
    mean = np.maximum(final.mean[:, None] - 0.35 * missing[None, :], 0.05)
    climb = 0.1**2 * np.outer(missing, missing)
    return ColdCells(mean, climb, climb, QUALITY_NOISE, final.cov)


def _cold_cost(cost: Array, share: Array) -> ColdCells:
    """Cost in proportion to the share, with a tenth of it to begin with."""
    if (cost <= 0).any() or not np.isfinite(cost).all():
        raise InvalidInput("the cost of a trial must be above zero and finite")
    steps = np.log(0.1 + 0.9 * share)
    E = len(share)
    level = np.full((E, E), 0.5**2) + 0.1**2 * np.outer(steps, steps)
    own = np.full((E, E), 0.3**2) + 0.1**2 * np.outer(steps, steps)
    return ColdCells(np.log(cost)[:, None] + steps[None, :], level, own, COST_NOISE)


@dataclass(frozen=True, eq=False)
class CurveBelief:
    """Posterior over one tenant's curves; immutable, `reached` returns the next one.

    `progress` `(K,)` is the last rung that each candidate reached (−1: none), `spent` `(K,)` its cost until there on
    the reference device. `steps` `(K, E)` are earlier tenants' rises of the logarithmic cost from rung to rung.
    """

    rungs: Array
    quality: FiniteGP
    log_cost: FiniteGP
    progress: Whole
    spent: Array
    steps: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.progress), len(self.rungs)

    @property
    def last(self) -> int:
        return len(self.rungs) - 1

    @property
    def mean(self) -> Array:
        """`(K,)` expected final quality: `E sin²w = (1 − cos 2m · e^{−2s²})/2`."""
        m, s = self.cells()
        return np.asarray(0.5 * (1.0 - np.cos(2.0 * m[:, -1]) * np.exp(-2.0 * s[:, -1] ** 2)))

    @property
    def sd(self) -> Array:
        """`(K,)` deviations of the final quality."""
        m, s = self.cells()
        first = np.cos(2.0 * m[:, -1]) * np.exp(-2.0 * s[:, -1] ** 2)
        second = 0.5 * (1.0 + np.cos(4.0 * m[:, -1]) * np.exp(-8.0 * s[:, -1] ** 2))
        return np.asarray(0.5 * np.sqrt((second - first * first).clip(min=0.0)))

    def column(self, k: int) -> Array:
        """`(K,)` covariances of final qualities with candidate `k`, to first order."""
        slopes = np.sin(2.0 * self.cells()[0][:, -1])
        between = self.quality.column(self._cell(k, self.last)).reshape(self.shape)[:, -1]
        return np.asarray(slopes * slopes[k] * between)

    def cells(self) -> tuple[Array, Array]:
        """Mean and deviation `(K, E)` of `arcsin √quality`."""
        return self.quality.mean.reshape(self.shape), self.quality.sd.reshape(self.shape)

    def costs(self) -> Array:
        """`(K, E)`: expected cost from the beginning until each rung, on the reference device."""
        return np.asarray(np.exp(self.log_cost.mean).reshape(self.shape))

    def costs_ahead(self) -> Array:
        """`(K, E)`: what is still to be paid until each rung; infinite for rungs that were passed."""
        left = self.costs() - self.spent[:, None]
        begun = self.progress >= 0
        # whoever stopped before the first rung has about as much before it as anybody
        left[~begun] = np.maximum(left[~begun], LEAST_STEP * self.costs()[~begun])
        if begun.any():
            # an extrapolated cost may lie below what was paid already
            at = self.progress[begun]
            rises = np.cumsum(self.steps[begun][:, 1:], axis=1)
            rises = np.concatenate([np.zeros((len(at), 1)), rises], axis=1)
            usual = np.expm1(rises - rises[np.arange(len(at)), at][:, None])
            left[begun] = np.maximum(left[begun], LEAST_STEP * usual * self.spent[begun][:, None])
        ahead = np.arange(len(self.rungs))[None, :] > self.progress[:, None]
        return np.where(ahead, np.maximum(left, 1e-9 * self.costs()), np.inf)

    def rung_at(self, share: float) -> int:
        return int(np.searchsorted(self.rungs, share * self.rungs[-1] * (1.0 + 1e-9), side="right")) - 1

    def reached(self, k: int, rung: int, quality: float, seconds: float | None = None) -> Self:
        """Returns the belief after candidate `k` came to `rung` with `quality`, `seconds` later.

        One that stopped between two rungs has cost something, and is no further by what is believed of it.
        """
        if not np.isfinite(quality):
            return self
        if rung <= self.progress[k]:
            spent = self.spent.copy()
            spent[k] += max(seconds or 0.0, 0.0)
            return replace(self, spent=spent)
        cell = self._cell(k, rung)
        progress, spent = self.progress.copy(), self.spent.copy()
        progress[k] = max(rung, progress[k])
        log_cost = self.log_cost
        if seconds is not None and np.isfinite(seconds):
            spent[k] += max(seconds, 0.0)
            log_cost = log_cost.observed(cell, float(np.log(max(spent[k], 1e-9))))
        else:
            spent[k] = float(self.costs()[k, rung])
        seen = self.quality.observed(cell, float(warped(np.array(quality))))
        return replace(self, quality=seen, log_cost=log_cost, progress=progress, spent=spent)

    def observed(self, k: int, y: float, extra_noise: float = 0.0) -> Self:
        """Returns the belief after a whole trial."""
        return self.reached(k, self.last, y)

    def expected(self, k: int, rung: int) -> Self:
        """Returns the belief after a slice that ends as expected: what a running one will at least teach."""
        return replace(self, quality=self.quality.believed(self._cell(k, rung)))

    def believed(self, k: int) -> Self:
        return self.expected(k, self.last)

    def _cell(self, k: int, rung: int) -> int:
        return int(k) * len(self.rungs) + int(rung)

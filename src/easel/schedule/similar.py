"""Tenants alike in what their candidates cost are alike in what their candidates reach.

The cost of every candidate is predicted before anything runs, and it tells of a tenant's data: how many rows,
how wide, how slow for which family. Where the history supports it, the prior mean of a tenant moves with the
leading components of its logarithmic costs; where costs say nothing (synthetic ones, few earlier tenants) the
common mean is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.optimise.covariance import FLOOR, filled, ledoit_wolf, row_log_likelihoods
from easel.schedule.learn import learn_priors, learned_prior
from easel.schedule.prior import Prior, typical
from easel.schedule.table import ScoreTable

COMPONENTS = (1, 2, 3)
ROWS_PER_COMPONENT = 10
"""Fewer earlier tenants than this per component are not asked."""
FOLDS = 5
RIDGE = 1.0
SURE = 3.0
"""By how many standard errors the held-out likelihood must rise."""
FAR = 3.0
"""Components are cut off at so many deviations: no tenant is extrapolated further."""


@dataclass(frozen=True, eq=False)
class CostSpace:
    """Principal components of centred log costs: `centre` `(K,)`, `axes` `(K, r)`, unit-variance scores."""

    centre: Array
    axes: Array

    @classmethod
    def of(cls, cost: Array, r: int) -> CostSpace:
        logs = _logs(cost)
        centre = logs.mean(0)
        _, s, Vt = np.linalg.svd(logs - centre, full_matrices=False)
        width = np.maximum(s[:r], 1e-12) / np.sqrt(len(logs))
        return cls(centre, Vt[:r].T / width)

    def scores(self, cost: Array) -> Array:
        """`(n, r)` of `cost` `(n, K)`."""
        return np.asarray(((_logs(cost) - self.centre) @ self.axes).clip(-FAR, FAR))


def _logs(cost: Array) -> Array:
    usable = np.where(np.isfinite(cost) & (cost > 0.0), cost, np.nan)
    return filled(np.log(usable))


def slopes(F: Array, Z: Array) -> Array:
    """`(r, K)` ridge regression of centred qualities `Z` `(n, K)` on scores `F` `(n, r)`."""
    return np.asarray(np.linalg.solve(F.T @ F + RIDGE * np.eye(F.shape[1]), F.T @ Z))


def useful_components(quality: Array, cost: Array) -> int:
    """How many cost components make held-out rows likelier, beyond doubt; 0 for none."""
    X = filled(quality)
    n = len(X)
    parts = np.arange(n) % FOLDS
    best, found = 0.0, 0
    plain: Array | None = None
    for r in COMPONENTS:
        if n < ROWS_PER_COMPONENT * r or X.shape[1] <= r:
            break
        F = CostSpace.of(cost, r).scores(cost)
        if plain is None:
            plain = _held_out(X, F * 0.0, parts)
        gain = _held_out(X, F, parts) - plain
        if gain.mean() > max(best, SURE * gain.std(ddof=1) / np.sqrt(n)):
            best, found = float(gain.mean()), r
    return found


def _held_out(X: Array, F: Array, parts: npt.NDArray[np.int_]) -> Array:
    out = np.empty(len(X))
    for f in range(FOLDS):
        held = parts == f
        centre = X[~held].mean(0)
        B = slopes(F[~held], X[~held] - centre)
        rest = X[~held] - centre - F[~held] @ B
        cov = ledoit_wolf(rest) + FLOOR * np.eye(X.shape[1])
        out[held] = row_log_likelihoods(X[held] - centre - F[held] @ B, cov)
    return out


def history_priors(history: ScoreTable, tenants: ScoreTable) -> dict[str, Prior]:
    """A prior for each of `tenants`, over the candidates of both tables: as the live pool learns it, beside what is
    typical of accuracies, its mean moved by what the candidates cost (`schedule/learn`)."""
    if history.candidates != tenants.candidates:
        raise InvalidInput("history and tenants must have the same candidates in the same order")
    quality, cost = history.quality, history.cost
    cold = typical(quality.shape[1])
    seen = ~np.isnan(quality)
    r = useful_components(quality, cost) if len(quality) and seen.any(1).all() and seen.any(0).all() else 0
    if r == 0:
        return dict.fromkeys(tenants.tenants, learned_prior(quality, cold, cost))
    space = CostSpace.of(cost, r)
    learned = learn_priors(quality, cold, space.scores(cost), cost)
    return {
        name: learned.prior(space.scores(own[None, :])[0])
        for name, own in zip(tenants.tenants, tenants.cost, strict=True)
    }

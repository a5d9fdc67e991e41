"""Tenants alike in what their candidates cost are alike in what their candidates reach.

The cost of every candidate is predicted before anything runs, and it tells of a tenant's data: how many rows,
how wide, how slow for which family. Where the history supports it, the prior mean of a tenant moves with the
leading components of its logarithmic costs; where costs say nothing (synthetic ones, few earlier tenants) the
common mean is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput
from easel.optimise.arcsine import to_angle
from easel.optimise.arrays import Array
from easel.optimise.covariance import FLOOR, estimate, filled, ledoit_wolf, row_log_likelihoods
from easel.schedule.hope import tuned
from easel.schedule.learn import learned_prior
from easel.schedule.prior import Prior, from_history, typical
from easel.schedule.table import ScoreTable

COMPONENTS = (1, 2, 3)
ROWS_PER_COMPONENT = 10
"""Fewer earlier tenants than this per component are not asked."""
FOLDS = 5
RIDGE = 1.0
SURE = 3.0
"""By how many standard errors the held-out likelihood must rise."""
FEW_ROWS = 8
"""Fewer earlier tenants than this are helped by a prior of what is typical (docs/results/prior.md)."""
SCALE_ROWS = 20
"""Fewer rows cannot tell on which scale they are normal: accuracies usually are as angles."""
INNER = (0.002, 0.998)
"""Qualities at the very ends would decide about the scale alone."""
NEARLY_WHOLE = 0.9
"""Rows that lack more cells than this leaves cannot be served again."""
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
    """A prior for each of `tenants`, over the candidates of both tables."""
    if history.candidates != tenants.candidates:
        raise InvalidInput("history and tenants must have the same candidates in the same order")
    return tenant_priors(history.quality, history.cost, dict(zip(tenants.tenants, tenants.cost, strict=True)))


def tenant_priors(quality: Array, cost: Array, costs: Mapping[str, Array]) -> dict[str, Prior]:
    """`quality` and `cost` `(n, K)` of earlier tenants; `costs` `(K,)` of each new one by name.

    Qualities that all lie in [0, 1] are modelled as angles (`optimise/arcsine`), unless many rows say that they are
    likelier as they are; the upper side is as wide as served the earlier tenants best (`schedule/hope`). Few rows stand
    beside what is typical of accuracies.
    """
    if as_angles(quality):
        if np.isfinite(quality).any(1).sum() < FEW_ROWS:
            return dict.fromkeys(costs, learned_prior(quality, typical(quality.shape[1]), cost))
        found = _priors(to_angle(quality), cost, costs, arcsine=True)
    else:
        found = _priors(quality, cost, costs, arcsine=False)
    return found


def as_angles(quality: Array) -> bool:
    """Whether `arcsin √quality` is the better scale: for few rows yes, for many the one that makes rows likelier."""
    known = quality[np.isfinite(quality)]
    if not len(known) or known.min() < 0.0 or known.max() > 1.0:
        return False
    rows = filled(quality[np.isfinite(quality).any(1)])
    if len(rows) < SCALE_ROWS:
        return True
    inner = np.clip(rows, *INNER)
    jacobian = -float(np.log(2.0 * np.sqrt(inner * (1.0 - inner))).sum())
    return estimate(to_angle(rows)).likelihood + jacobian >= estimate(rows).likelihood


def _priors(quality: Array, cost: Array, costs: Mapping[str, Array], *, arcsine: bool) -> dict[str, Prior]:
    seen = ~np.isnan(quality)
    rows, columns = seen.any(1), seen.any(0)
    r = useful_components(quality[rows], cost[rows]) if columns.all() and rows.any() else 0
    if r == 0:
        shared = _hopeful(from_history(quality), quality, cost, arcsine=arcsine)
        return dict.fromkeys(costs, shared)
    space = CostSpace.of(cost[rows], r)
    F = space.scores(cost[rows])
    X = filled(quality[rows])
    B = slopes(F, X - X.mean(0))
    rest = X - F @ B
    prior = _hopeful(from_history(rest), rest, cost[rows], arcsine=arcsine)
    method = f"{prior.method}, moved by {r} cost components"
    return {
        name: replace(prior, mean=prior.mean + space.scores(own[None, :])[0] @ B, method=method)
        for name, own in costs.items()
    }


def _hopeful(prior: Prior, quality: Array, cost: Array, *, arcsine: bool) -> Prior:
    prior = replace(prior, arcsine=arcsine)
    whole = (~np.isnan(quality)).mean(1) >= NEARLY_WHOLE
    return tuned(prior, filled(quality)[whole], cost[whole]) if whole.any() else prior

"""Priors from hand-set beliefs and from history, each trusted as far as it foretells rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from easel.optimise.arcsine import to_angle
from easel.optimise.arrays import Array
from easel.optimise.covariance import estimate, upper_deviations
from easel.optimise.missing import Moments, posterior_moments
from easel.schedule.hope import tuned
from easel.schedule.prior import Prior

PSEUDO_ROWS = (3.0, 15.0)
"""How many earlier tenants the cold prior may count as."""
FOLDS = 5
COMPLETE = 0.9
"""Rows with at least this share of their cells are whole enough for the estimators of `optimise/covariance`."""
SLIGHT = 0.01
USUAL_UPSIDE = 0.8
"""Real candidates surprise upwards less than downwards: what rows with gaps come to, and whole rows say themselves."""
DOF = 10.0
RIDGE = 10.0
SURE = 2.0
"""By how many standard errors properties must raise the held-out likelihood before they move a mean."""
FAR = 2.5
"""Properties are cut off at so many deviations: no tenant is extrapolated further."""
ROWS_PER_PROPERTY = 3


def in_angles(prior: Prior) -> Prior:
    """The same belief over `arcsin √quality`, to first order: `dw/dq = 1/sin 2w`."""
    if prior.arcsine:
        return prior
    mean = to_angle(np.clip(prior.mean, 0.01, 0.99))
    slope = 1.0 / np.maximum(np.sin(2.0 * mean), 0.2)
    return replace(prior, mean=mean, cov=prior.cov * np.outer(slope, slope), arcsine=True)


@dataclass(frozen=True, eq=False)
class LearnedPriors:
    """`shared` is everybody's; its mean moves with a tenant's properties, `slopes` `(d, K)` for each unit deviation."""

    shared: Prior
    centre: Array
    width: Array
    slopes: Array

    def prior(self, properties: Array | None = None) -> Prior:
        """Returns the belief for a tenant with `properties` `(d,)`; the covariance is shared by all."""
        if properties is None or not self.slopes.size:
            return self.shared
        moved = _scaled(properties[None, :], self.centre, self.width)[0] @ self.slopes
        return replace(self.shared, mean=self.shared.mean + moved)


def learned_prior(history: Array, cold: Prior, cost: Array | None = None) -> Prior:
    """The prior for a new tenant: `cold` where there is no history, and more of history the better it foretells.

    `history` `(n, K)` holds the qualities, in [0, 1], of the same candidates for earlier tenants, NaN where one was not
    run; `cost` `(n, K)` what they cost there, where known.
    """
    return learn_priors(history, cold, cost=cost).shared


def learn_priors(
    history: Array, cold: Prior, properties: Array | None = None, cost: Array | None = None
) -> LearnedPriors:
    """Learns as `learned_prior` does, and with `properties` `(n, d)` of earlier tenants a mean that moves with them."""
    none = np.empty((0, 0))
    there = (~np.isnan(history)).any(1) if len(history) else np.zeros(0, dtype=bool)
    if not there.any():
        return LearnedPriors(cold, none, none, none)
    cold = in_angles(cold)
    K = len(cold.mean)
    H = history[there]
    H = np.where(np.isnan(H), np.nan, to_angle(H))
    found = _weighed(H, cold)
    centre, width, slopes, moved = none, none, none, np.zeros_like(H)
    if properties is not None:
        F = properties[there]
        centre, width = F.mean(0), np.maximum(F.std(0), 1e-6)
        F = _scaled(F, centre, width)
        slopes = _useful_slopes(F, H, found)
        if slopes.size:
            moved = F @ slopes
            found = _weighed(H - moved, cold)
    method = f"learned from {len(H)} tenants" + (" and their properties" if slopes.size else "")
    rest = H - moved
    whole = ~np.isnan(rest).any(1)
    upside = np.full(K, 1.0 - (1.0 - USUAL_UPSIDE) * len(H) / (len(H) + 5.0))
    if whole.sum() >= FOLDS:
        upside = upper_deviations([(rest[whole] - found.mean, found.cov)])
    prior = Prior(found.mean, found.cov, cold.noise, DOF, method, arcsine=True, upside=upside)
    if cost is not None and whole.sum() >= FOLDS:
        prior = tuned(prior, rest[whole], cost[there][whole])
    return LearnedPriors(prior, centre, width, slopes)


def _weighed(H: Array, cold: Prior) -> Moments:
    """Three kinds of belief compete for the likelihood of rows held out, and are averaged by it.

    The cold prior; the cold prior counted as a few rows beside the rows of `H`, gaps and all; and, of whole rows, the
    regularised estimates. One row cannot be held out: there the cold prior and its lightest mixture count alike.
    """
    before = Moments(cold.mean, cold.cov)
    n = len(H)
    kinds = _kinds(H)
    if n == 1:
        scores = dict.fromkeys(kinds[:2], 0.0)
    else:
        scores = dict.fromkeys(kinds, 0.0)
        for fold in range(min(FOLDS, n)):
            held = np.arange(n) % min(FOLDS, n) == fold
            for kind in kinds:
                scores[kind] += float(_found(kind, H[~held], before).likelihoods(H[held]).sum())
    best = max(scores.values())
    weights = {kind: float(np.exp(score - best)) for kind, score in scores.items()}
    total = sum(w for w in weights.values() if w > SLIGHT)
    parts = [(w / total, _found(kind, H, before)) for kind, w in weights.items() if w > SLIGHT]
    return _mixture(parts)


def _mixture(parts: Sequence[tuple[float, Moments]]) -> Moments:
    mean = np.asarray(sum(w * one.mean for w, one in parts))
    cov = sum(w * (one.cov + np.outer(one.mean - mean, one.mean - mean)) for w, one in parts)
    return Moments(mean, np.asarray(cov))


Kind = str | float
"""`cold`, `history`, or how many rows the cold prior counts as."""


def _kinds(H: Array) -> tuple[Kind, ...]:
    whole = bool(((~np.isnan(H)).mean(1) >= COMPLETE).all()) and len(H) >= FOLDS
    return ("cold", *PSEUDO_ROWS, *(("history",) if whole else ()))


def _found(kind: Kind, H: Array, before: Moments) -> Moments:
    if kind == "cold":
        return before
    if isinstance(kind, float):
        return posterior_moments(H, before, kind)
    if np.isnan(H).any():
        H = posterior_moments(H, before, PSEUDO_ROWS[0]).completed(H)[0]
    found = estimate(H)
    return Moments(found.mean, found.cov)


def _scaled(F: Array, centre: Array, width: Array) -> Array:
    return np.asarray(((F - centre) / width).clip(-FAR, FAR))


def _useful_slopes(F: Array, H: Array, found: Moments) -> Array:
    """`(d, K)` ridge regression of what `found` leaves over on `F` `(n, d)`; empty where it foretells no better."""
    n, d = F.shape
    if n < ROWS_PER_PROPERTY * d:
        return np.empty((0, 0))
    rest = found.completed(H)[0] - found.mean
    gains = np.zeros(n)
    for fold in range(FOLDS):
        held = np.arange(n) % FOLDS == fold
        B = _slopes(F[~held], rest[~held])
        gains[held] = found.likelihoods(H[held] - F[held] @ B) - found.likelihoods(H[held])
    sure = gains.mean() > SURE * gains.std(ddof=1) / np.sqrt(n)
    return _slopes(F, rest) if sure else np.empty((0, 0))


def _slopes(F: Array, Z: Array) -> Array:
    return np.asarray(np.linalg.solve(F.T @ F + RIDGE * np.eye(F.shape[1]), F.T @ Z))

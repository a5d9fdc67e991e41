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
from easel.schedule.scale import as_angles, in_angles, in_qualities
from easel.schedule.state import Mask

PSEUDO_ROWS = (3.0, 15.0)
"""How many earlier tenants the cold prior may count as."""
FOLDS = 5
COMPLETE, WELL_SEEN = 0.9, 0.5
"""The estimators of `optimise/covariance` want so much of all cells, and of each candidate's."""
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

    `history` `(n, K)` holds the qualities of the same candidates for earlier tenants, NaN where one was not run; `cost`
    `(n, K)` what they cost there, where known.
    """
    return learn_priors(history, cold, cost=cost).shared


def learn_priors(
    history: Array, cold: Prior, properties: Array | None = None, cost: Array | None = None
) -> LearnedPriors:
    """Learns as `learned_prior` does, and with `properties` `(n, d)` of earlier tenants a mean that moves with them.

    Beliefs are of angles or of qualities as they are, whichever history says (`schedule/scale`).
    """
    none = np.empty((0, 0))
    there = (~np.isnan(history)).any(1) if len(history) else np.zeros(0, dtype=bool)
    if not there.any():
        return LearnedPriors(cold, none, none, none)
    arcsine = as_angles(history[there])
    cold = in_angles(cold) if arcsine else in_qualities(cold)
    H = history[there]
    if arcsine:
        H = np.where(np.isnan(H), np.nan, to_angle(H))
    found = _weighed(H, cold)
    centre, width, slopes, moved = none, none, none, np.zeros_like(H)
    if properties is not None:
        F = properties[there]
        centre, width = F.mean(0), np.maximum(F.std(0), 1e-6)
        F = _scaled(F, centre, width)
        slopes = _useful_slopes(F, H, found.moments)
        if slopes.size:
            moved = F @ slopes
            found = _weighed(H - moved, cold)
    method = f"learned from {len(H)} tenants" + (" and their properties" if slopes.size else "")
    mean, cov = found.moments.mean, found.moments.cov
    prior = Prior(mean, cov, cold.noise, found.dof, method, arcsine=arcsine, upside=found.upside)
    whole = _whole(H)
    if cost is not None and whole.sum() >= FOLDS:
        prior = tuned(prior, found.moments.completed((H - moved)[whole])[0], cost[there][whole])
    return LearnedPriors(prior, centre, width, slopes)


def _whole(H: Array) -> Mask:
    return np.asarray((~np.isnan(H)).mean(1) >= COMPLETE)


@dataclass(frozen=True, eq=False)
class _Found:
    """A belief about rows: its moments, and how it errs: Student degrees of freedom, `upside` `(K,)`."""

    moments: Moments
    dof: float
    upside: Array


def _weighed(H: Array, cold: Prior) -> _Found:
    """Three kinds of belief compete for the likelihood of rows held out, and are averaged by it.

    The cold prior; the cold prior counted as a few rows beside the rows of `H`, gaps and all; and, where gaps are few,
    the regularised estimates. One row cannot be held out: there the cold prior and its lightest mixture count alike.
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
                scores[kind] += float(_found(kind, H[~held], before).moments.likelihoods(H[held]).sum())
    best = max(scores.values())
    weights = {kind: float(np.exp(score - best)) for kind, score in scores.items()}
    total = sum(w for w in weights.values() if w > SLIGHT)
    parts = [(w / total, _found(kind, H, before)) for kind, w in weights.items() if w > SLIGHT]
    return _mixture(parts, H)


def _mixture(parts: Sequence[tuple[float, _Found]], H: Array) -> _Found:
    mean = np.asarray(sum(w * one.moments.mean for w, one in parts))
    cov = sum(
        w * (one.moments.cov + np.outer(one.moments.mean - mean, one.moments.mean - mean)) for w, one in parts
    )
    moments = Moments(mean, np.asarray(cov))
    heaviest = max(parts, key=lambda part: part[0])[1]
    return _Found(moments, heaviest.dof, _upside(moments, heaviest, H))


def _upside(moments: Moments, heaviest: _Found, H: Array) -> Array:
    if np.isfinite(heaviest.upside).all():
        return heaviest.upside
    whole = ~np.isnan(H).any(1)
    if whole.sum() >= FOLDS:
        return upper_deviations([(H[whole] - moments.mean, moments.cov)])
    return np.full(H.shape[1], 1.0 - (1.0 - USUAL_UPSIDE) * len(H) / (len(H) + 5.0))


Kind = str | float
"""`cold`, `history`, or how many rows the cold prior counts as."""


def _kinds(H: Array) -> tuple[Kind, ...]:
    seen = ~np.isnan(H)
    full = float(seen.mean()) >= COMPLETE and float(seen.mean(0).min()) >= WELL_SEEN
    return ("cold", *PSEUDO_ROWS, *(("history",) if full and _whole(H).sum() >= FOLDS else ()))


def _found(kind: Kind, H: Array, before: Moments) -> _Found:
    unknown = np.full(H.shape[1], np.nan)
    if kind == "cold":
        return _Found(before, DOF, unknown)
    if isinstance(kind, float):
        return _Found(posterior_moments(H, before, kind), DOF, unknown)
    found = estimate(H)
    return _Found(Moments(found.mean, found.cov), found.dof, found.upside)


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

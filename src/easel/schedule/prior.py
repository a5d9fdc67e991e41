"""What a new tenant is expected to be like: mean and covariance over candidates.

From how the same candidates did for earlier tenants; from a kernel over candidate features where there is
little or no history; or both, blended as history grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array
from easel.optimise.covariance import estimate, filled, ledoit_wolf
from easel.optimise.finite import FiniteGP
from easel.optimise.gp import fit
from easel.optimise.kernels import Constant, Kernel, Matern52, SquaredExponential
from easel.schedule.learned_belief import LearnedBelief
from easel.schedule.state import Mask

NOISE = 1e-6
"""Variance of a repeated trial: tables hold one number per cell, and nobody reruns."""
WEAK_MEAN, TENANT_SD, CANDIDATE_SD = 0.5, 0.2, 0.1
"""With neither history nor features: qualities between 0 and 1, tenants differ more than candidates do."""
TYPICAL_MEAN, TYPICAL_LEVEL_SD, TYPICAL_OWN_SD = 0.75, 0.15, 0.094
HALF_TRUST = 5.0
"""So many earlier tenants count as much as the features do."""


@dataclass(frozen=True, eq=False)
class Prior:
    """`mean` `(K,)`, `cov` `(K, K)`, observation variance `noise`, Student `dof` (`inf`: Gaussian)."""

    mean: Array
    cov: Array
    noise: float = NOISE
    dof: float = np.inf
    method: str = "given"
    arcsine: bool = False
    """Whether mean, covariance and noise are of `arcsin √quality` (qualities lie in [0, 1])."""

    upside: Array | None = None
    """`(K,)` how much wider than normal the upper side is (`LearnedBelief`); as wide where not given."""

    def belief(self) -> FiniteGP | LearnedBelief:
        process = FiniteGP.prior(self.mean, self.cov, self.noise, self.dof)
        if not self.arcsine and self.upside is None:
            return process
        upside = np.ones(len(self.mean)) if self.upside is None else self.upside
        return LearnedBelief(process, upside, self.arcsine)


def weak(K: int) -> Prior:
    """Knows nothing about any candidate: one level per tenant, equal candidates."""
    cov = TENANT_SD**2 * np.ones((K, K)) + CANDIDATE_SD**2 * np.eye(K)
    return Prior(np.full(K, WEAK_MEAN), cov, dof=5.0, method="weak")


def typical(K: int) -> Prior:
    """Accuracies as they usually are: around 0.75, a level for the tenant and a smaller part for each candidate."""
    cov = TYPICAL_LEVEL_SD**2 * np.ones((K, K)) + TYPICAL_OWN_SD**2 * np.eye(K)
    return Prior(np.full(K, TYPICAL_MEAN), cov, method="typical")


def sample_prior(history: Array) -> Prior:
    """The papers' reading: sample mean and Ledoit–Wolf covariance of `history` `(n, K)`, Gaussian."""
    n, K = history.shape
    if n == 0:
        return weak(K)
    X = filled(history)
    mean = X.mean(0)
    return Prior(mean, ledoit_wolf(X - mean), method="ledoit-wolf")


def quality_vector_prior(history: Array, kernel: str = "squared-exponential") -> Prior:
    """arXiv appendix A: each candidate's feature is its vector of qualities for the earlier tenants.

    A stationary kernel over those vectors, one length scale, hyperparameters by marginal likelihood over the
    history's own rows (each centred), constant mean.
    """
    n, K = history.shape
    if n == 0:
        return weak(K)
    X = filled(history)
    features = (X.T - X.T.mean(0)) / max(float(X.std()), 1e-6) / np.sqrt(n)
    shape = SquaredExponential if kernel == "squared-exponential" else Matern52
    # one length scale, learned from (at most) five rows as functions of the candidates
    chosen = X[: min(n, 5)]
    start: Kernel = Constant() * shape(np.zeros(1))
    fits = [fit(start, features, row) for row in chosen]
    theta = np.mean([g.kernel.theta for g in fits], axis=0)
    variance = float(np.mean([g.scale**2 for g in fits]))
    level = float(X.mean(1).var())
    cov = variance * start.at(theta)(features, features) + level
    return Prior(np.full(K, float(X.mean())), cov, method=f"{kernel} over quality vectors")


def from_features(features: Array, mean: float = WEAK_MEAN) -> Prior:
    """Returns a prior without history: constant mean, Matérn 5/2 over scaled features `(K, d)`."""
    low, high = features.min(0), features.max(0)
    unit = (features - low) / np.where(high > low, high - low, 1.0)
    K = len(features)
    shape = Matern52.ard(features.shape[1])(unit, unit)
    cov = TENANT_SD**2 * np.ones((K, K)) + CANDIDATE_SD**2 * shape
    return Prior(np.full(K, mean), cov, dof=5.0, method="features")


def from_history(history: Array, features: Array | None = None) -> Prior:
    """The default: regularised by held-out likelihood, Student rows; features fill in where history is thin.

    `history` `(n, K)` may have missing cells. A candidate that nobody has run (an empty column) is taken
    to be an average one, twice as uncertain. With `features` `(K, d)` the feature prior counts as
    `HALF_TRUST` tenants, and tells an unseen candidate what its kin did.
    """
    K = history.shape[1]
    seen = ~np.isnan(history)
    rows = history[seen.any(1)]
    if len(rows) == 0:
        return weak(K) if features is None else from_features(features)
    known: Mask = np.asarray(seen.any(0))
    found = estimate(rows[:, known])
    mean, cov = _with_unseen(found.mean, found.cov, known)
    upside = np.full(K, float(np.median(found.upside)))
    upside[known] = found.upside
    prior = Prior(mean, cov, dof=found.dof, method=found.method, upside=upside)
    return prior if features is None else _blend(prior, features, known, len(rows))


def _with_unseen(mean: Array, cov: Array, known: Mask) -> tuple[Array, Array]:
    """Put average candidates into the gaps of `known` `(K,)`."""
    if known.all():
        return mean, cov
    K, k = len(known), int(known.sum())
    between = float(mean.var()) + float(np.diag(cov).mean())
    shared = float((cov.sum() - np.trace(cov)) / (k * (k - 1))) if k > 1 else 0.0
    full_mean = np.full(K, float(mean.mean()))
    full_mean[known] = mean
    full = np.full((K, K), max(shared, 0.0))
    full[np.diag_indices(K)] = 2.0 * between
    full[np.ix_(known, known)] = cov
    # the average covariance with everybody need not be consistent with the block: project
    w, U = np.linalg.eigh(full)
    return full_mean, (U * w.clip(min=1e-9)) @ U.T


def _blend(prior: Prior, features: Array, known: Mask, n: int) -> Prior:
    from_kin = from_features(features, float(prior.mean[known].mean()))
    # what the known candidates' means say about their kin
    residual = prior.mean[known] - from_kin.mean[known]
    gp = from_kin.cov - TENANT_SD**2
    weights = np.linalg.solve(
        gp[np.ix_(known, known)] + CANDIDATE_SD**2 * 0.1 * np.eye(int(known.sum())), residual
    )
    kin_mean = from_kin.mean + gp[:, known] @ weights
    trust = n / (n + HALF_TRUST)
    mean = np.where(known, trust * prior.mean + (1 - trust) * kin_mean, kin_mean)
    scale = float(np.diag(prior.cov)[known].mean() / np.diag(from_kin.cov).mean())
    cov = trust * prior.cov + (1 - trust) * scale * from_kin.cov
    unseen = ~known
    if unseen.any():
        cov[unseen, :] = scale * from_kin.cov[unseen, :]
        cov[:, unseen] = scale * from_kin.cov[:, unseen]
        w, U = np.linalg.eigh(cov)
        cov = (U * w.clip(min=1e-9)) @ U.T
    return Prior(mean, cov, prior.noise, prior.dof, f"{prior.method} and features")

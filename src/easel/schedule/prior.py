"""What a new tenant is expected to be like: mean and covariance over candidates.

What is typical of accuracies, and the papers' readings of how the same candidates did for earlier tenants; the
service's own reading is in `schedule/learn`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array
from easel.optimise.covariance import filled, ledoit_wolf
from easel.optimise.finite import FiniteGP
from easel.optimise.gp import fit
from easel.optimise.kernels import Constant, Kernel, Matern52, SquaredExponential
from easel.schedule.learned_belief import LearnedBelief

NOISE = 1e-6
"""Variance of a repeated trial: tables hold one number per cell, and nobody reruns."""
WEAK_MEAN, TENANT_SD, CANDIDATE_SD = 0.5, 0.2, 0.1
"""With neither history nor features: qualities between 0 and 1, tenants differ more than candidates do."""
TYPICAL_MEAN, TYPICAL_LEVEL_SD, TYPICAL_OWN_SD = 0.75, 0.15, 0.094


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

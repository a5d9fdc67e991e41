"""Mean and covariance over candidates from few rows of history, some cells missing.

`H` is `(n, K)`: one row per earlier tenant, NaN where a candidate was not run. With `n < K` the sample
covariance is singular; several regularised estimates compete and the one that gives rows held out the highest
likelihood is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.optimise.arrays import Array, cholesky, solve_lower

FLOOR = 1e-7
"""Variance below which qualities cannot be told apart; keeps every estimate positive definite."""
SHRINKAGES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
RANKS = (1, 2, 3, 5, 8, 12)
SPARSE_RANKS = (1, 2, 4)
THRESHOLDS = (0.5, 1.0, 2.0)
DOFS = (10.0, 15.0, 30.0, 100.0)
"""Degrees of freedom to choose from. Likelihood alone would go lower, but decisions get worse below ten: a
few early results then rule a tenant's spread (docs/design/scheduling.md)."""


@dataclass(frozen=True)
class Estimate:
    """`mean` `(K,)`, `cov` `(K, K)`, `dof` of the Student rows, and which estimator won."""

    mean: Array
    cov: Array
    dof: float
    method: str


Estimator = Callable[[Array], Array]
"""Covariance `(K, K)` from complete, centred rows `(n, K)`."""


def filled(H: Array) -> Array:
    """`(n, K)` without gaps: a missing cell is its row's effect plus its column's (two-way additive fit)."""
    gaps = np.isnan(H)
    if not gaps.any():
        return H
    known = ~gaps
    grand = float(H[known].mean()) if known.any() else 0.0
    Z = np.where(gaps, 0.0, H - grand)
    row, column = np.zeros((len(H), 1)), np.zeros((1, H.shape[1]))
    # one pseudo-observation at zero keeps the effect of a nearly empty row or column small
    for _ in range(10):
        row = ((Z - column) * known).sum(1, keepdims=True) / (known.sum(1, keepdims=True) + 1.0)
        column = ((Z - row) * known).sum(0, keepdims=True) / (known.sum(0, keepdims=True) + 1.0)
    return np.where(gaps, grand + row + column, H)


def sample(Z: Array) -> Array:
    """`ZᵀZ/n + floor`."""
    n, K = Z.shape
    return np.asarray(Z.T @ Z / max(n, 1) + FLOOR * np.eye(K))


def ledoit_wolf(Z: Array) -> Array:
    """Ledoit and Wolf (2004): `(1 − ρ)S + ρ·(tr S/K)·I` with the `ρ` that minimises the expected error."""
    n, K = Z.shape
    S = Z.T @ Z / max(n, 1)
    level = float(np.trace(S)) / K
    away = float(((S - level * np.eye(K)) ** 2).sum())
    # Σ_i ‖z_i z_iᵀ − S‖² = Σ_i ‖z_i‖⁴ − n‖S‖²
    spread = float(((Z * Z).sum(1) ** 2).sum() - n * (S * S).sum()) / max(n, 1) ** 2
    rho = min(spread / away, 1.0) if away > 0.0 else 1.0
    return np.asarray((1.0 - rho) * S + (rho * level + FLOOR) * np.eye(K))


def constant_correlation(S: Array) -> Array:
    """The target that keeps each variance and gives every pair the mean correlation."""
    d = np.sqrt(np.diag(S))
    K = len(d)
    R = S / np.outer(d, d)
    mean = float(np.clip((R.sum() - K) / (K * (K - 1)), 0.0, 0.99)) if K > 1 else 0.0
    return np.outer(d, d) * (mean + (1.0 - mean) * np.eye(K))


def shrunk(weight: float, target: Callable[[Array], Array]) -> Estimator:
    def estimate(Z: Array) -> Array:
        S = sample(Z)
        return (1.0 - weight) * S + weight * target(S)

    return estimate


def diagonal(S: Array) -> Array:
    return np.diag(np.diag(S))


def low_rank_plus_diagonal(rank: int, steps: int = 60) -> Estimator:
    """Factor analysis, `WWᵀ + diag(ψ)` with `W` `(K, rank)`, by EM (Rubin and Thayer 1982)."""

    def estimate(Z: Array) -> Array:
        S = sample(Z)
        variances = np.diag(S)
        w, U = np.linalg.eigh(S)
        rest = float(w[:-rank].mean()) if len(w) > rank else 0.0
        W = U[:, -rank:] * np.sqrt((w[-rank:] - rest).clip(min=1e-8))
        floor = FLOOR + 1e-6 * variances
        psi = np.maximum(variances - (W * W).sum(1), floor)
        for _ in range(steps):
            scaled = W.T / psi
            M = np.linalg.inv(np.eye(W.shape[1]) + scaled @ W)
            B = M @ scaled
            SB = S @ B.T
            W = SB @ np.linalg.inv(M + B @ SB)
            psi = np.maximum(variances - np.einsum("kr,kr->k", W, SB), floor)
        return np.asarray(W @ W.T + np.diag(psi))

    return estimate


def low_rank_plus_sparse(rank: int, strength: float) -> Estimator:
    """POET (Fan, Liao and Mincheva 2013): leading components, and of the rest only what stands out.

    Residual covariances are soft-thresholded at `strength · √(log K/n) · √(r_ii r_jj)`: families of candidates
    keep their own correlation, chance correlations between strangers go.
    """

    def estimate(Z: Array) -> Array:
        n, K = Z.shape
        S = sample(Z)
        w, U = np.linalg.eigh(S)
        low = (U[:, -rank:] * w[-rank:]) @ U[:, -rank:].T
        R = S - low
        d = np.sqrt(np.diag(R).clip(min=FLOOR))
        level = strength * np.sqrt(np.log(max(K, 2)) / n) * np.outer(d, d)
        sparse = np.sign(R) * (np.abs(R) - level).clip(min=0.0)
        sparse[np.diag_indices(K)] = d * d
        v, V = np.linalg.eigh(sparse)
        return np.asarray(low + (V * v.clip(min=0.05 * float(np.median(d * d)))) @ V.T)

    return estimate


def estimators(n: int, K: int) -> Iterator[tuple[str, Estimator]]:
    """Every estimator that `n` rows of `K` can support, by name."""
    yield "ledoit-wolf", ledoit_wolf
    for weight in SHRINKAGES:
        yield f"to-diagonal-{weight:g}", shrunk(weight, diagonal)
        yield f"to-constant-correlation-{weight:g}", shrunk(weight, constant_correlation)
    for rank in RANKS:
        if rank < min(n, K) // 2:
            yield f"factors-{rank}", low_rank_plus_diagonal(rank)
    for rank in SPARSE_RANKS:
        for strength in THRESHOLDS:
            if rank < min(n, K) // 2:
                yield f"components-{rank}-sparse-{strength:g}", low_rank_plus_sparse(rank, strength)


def row_log_likelihoods(Z: Array, cov: Array) -> Array:
    """`(n,)`: `log N(z; 0, cov)` of each row of `Z` `(n, K)`."""
    L = cholesky(cov)
    W = solve_lower(L, Z.T)
    log_det = 2.0 * float(np.log(np.diag(L)).sum())
    return np.asarray(-0.5 * ((W * W).sum(0) + log_det + Z.shape[1] * np.log(2 * np.pi)))


def estimate(H: Array, folds: int = 5) -> Estimate:
    """The estimator and the degrees of freedom that make held-out rows likeliest, refitted on all rows.

    Rows are dealt to folds in their order, so the result depends on nothing but `H`. Fewer than four rows
    cannot be held out: those get the constant-correlation target alone.
    """
    X = filled(H)
    n, K = X.shape
    mean = X.mean(0)
    if n < 4:
        return Estimate(mean, _firm(constant_correlation(sample(X - mean))), 5.0, "constant-correlation")
    folds = min(folds, n)
    parts = [(np.arange(n) % folds == f) for f in range(folds)]
    smallest = n - int(max(p.sum() for p in parts))
    choices = dict(estimators(smallest, K))
    held_out = [(X[~held].mean(0), X[~held], X[held]) for held in parts]

    def score(name: str) -> float:
        parts = (row_log_likelihoods(out - mu, _firm(choices[name](kept - mu))) for mu, kept, out in held_out)
        return float(sum(part.sum() for part in parts))

    best = max(choices, key=score)
    spread = sum(spread_likelihoods(out - mu, _firm(choices[best](kept - mu))) for mu, kept, out in held_out)
    # unbiased, and for a new row about an estimated mean: n/(n − 1) · (n + 1)/n
    cov = (n + 1) / (n - 1) * _firm(choices[best](X - mean))
    return Estimate(mean, cov, DOFS[int(np.argmax(spread))], best)


def spread_likelihoods(Z: Array, cov: Array) -> Array:
    """For each of `DOFS`: how likely the rows' spreads are, each row's common level left out.

    As in `FiniteGP.scale`: `q = e·e − (u·e)²/(u·u)` on `K − 1` dimensions, Student with that many degrees of
    freedom and unit variance, up to a constant.
    """
    k = Z.shape[1] - 1
    L = cholesky(cov)
    e = solve_lower(L, Z.T)
    u = solve_lower(L, np.ones(k + 1))
    q = ((e * e).sum(0) - (u @ e) ** 2 / (u @ u)).clip(min=0.0)
    dof = np.array(DOFS)[:, None]
    each = (
        scipy.special.gammaln((dof + k) / 2)
        - scipy.special.gammaln(dof / 2)
        - 0.5 * k * np.log(dof - 2)
        - 0.5 * (dof + k) * np.log1p(q[None, :] / (dof - 2))
    )
    return np.asarray(each.sum(1))


def _firm(S: Array) -> Array:
    return S + np.diag(FLOOR + 1e-6 * np.diag(S))

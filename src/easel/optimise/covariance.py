"""Mean and covariance over candidates from few rows of history, some cells missing.

`H` is `(n, K)`: one row per earlier tenant, NaN where a candidate was not run. With `n < K` the sample
covariance is singular; several regularised estimates compete and the one that gives rows held out the highest
likelihood is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
CUTS = (0.7, 1.0, 1.5, 2.0)
CUT_ROWS = 30
"""Fewer rows cannot tell correlations that stand out from chance."""
SLIGHT = 0.01
"""Estimators of less weight than this are left out of the mean."""
FARTHEST = 4.0
"""A surprise of more deviations counts as so many: one row must not rule."""
DOFS = (10.0, 15.0, 30.0, 100.0)
"""Degrees of freedom to choose from. Likelihood alone would go lower, but decisions get worse below ten: a
few early results then rule a tenant's spread (docs/design/scheduling.md)."""


@dataclass(frozen=True)
class CovarianceEstimate:
    """`mean` `(K,)`, `cov` `(K, K)`, `dof` of the Student rows, and which estimator won.

    `upside` `(K,)`: the deviation of surprises upwards over that of the model; below 1 where candidates fail further
    than they surprise. `likelihood` is that of the held-out rows, NaN where there were too few.
    """

    mean: Array
    cov: Array
    dof: float
    method: str
    upside: Array
    likelihood: float


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


def shrunk_mean(X: Array) -> Array:
    """`(K,)` means of complete rows `X` `(n, K)`, drawn towards their common mean as far as chance explains them apart.

    Empirical Bayes: with each row's own level taken out, the column means differ by `τ²` beyond their standard errors
    `e²`; each keeps `τ²/(τ² + e²)` of its distance.
    """
    n, K = X.shape
    mean = X.mean(0)
    if n < 2 or K < 3:
        return np.asarray(mean)
    R = X - X.mean(1, keepdims=True)
    away = R.mean(0)
    error = R.var(0, ddof=1) / n
    between = max(float(away @ away) / (K - 1) - float(error.mean()), 0.0)
    keep = between / (between + np.maximum(error, 1e-12))
    return np.asarray(mean.mean() + keep * away)


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


def level_plus_sparse(strength: float) -> Estimator:
    """A common level, and of the rest only the correlations that stand out, those nearly whole.

    Residual correlations `r` are multiplied by `(1 − (t/|r|)⁴)⁺` with `t = strength · √(log K/n)` (Rothman, Levina and
    Zhu 2009): twins keep their likeness, chance correlations go.
    """

    def estimate(Z: Array) -> Array:
        n, K = Z.shape
        S = sample(Z)
        shared = max(float((S.sum() - np.trace(S)) / (K * (K - 1))), 0.0) if K > 1 else 0.0
        R = S - shared
        d = np.sqrt(np.diag(R).clip(min=0.05 * float(np.median(np.diag(S)))))
        r = np.abs(R) / np.outer(d, d)
        cut = strength * np.sqrt(np.log(max(K, 2)) / n)
        R = R * (1.0 - (cut / np.maximum(r, cut)) ** 4)
        R[np.diag_indices(K)] = d * d
        v, V = np.linalg.eigh(R)
        return np.asarray(shared + (V * v.clip(min=0.01 * float(np.median(d * d)))) @ V.T)

    return estimate


def estimators(n: int, K: int) -> Iterator[tuple[str, Estimator]]:
    """Every estimator that `n` rows of `K` can support, by name."""
    yield "ledoit-wolf", ledoit_wolf
    for weight in SHRINKAGES:
        yield f"to-diagonal-{weight:g}", shrunk(weight, diagonal)
        yield f"to-constant-correlation-{weight:g}", shrunk(weight, constant_correlation)
    for strength in CUTS if n >= CUT_ROWS else ():
        yield f"level-sparse-{strength:g}", level_plus_sparse(strength)
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


def estimate(H: Array, folds: int = 5) -> CovarianceEstimate:
    """Mean, covariance and degrees of freedom that make held-out rows likeliest, refitted on all rows.

    Estimators count by the likelihood that they give to rows held out: with many rows one of them has all the weight,
    with few rows they are averaged. Rows are dealt to folds in their order, so the result depends on nothing but `H`.
    Fewer than four rows cannot be held out: those get the constant-correlation target alone.
    """
    X = filled(H)
    n, K = X.shape
    mean = shrunk_mean(X)
    if n < 4:
        cov = _firm(constant_correlation(sample(X - mean)))
        return CovarianceEstimate(mean, cov, 5.0, "constant-correlation", np.ones(K), np.nan)
    folds = min(folds, n)
    parts = [(np.arange(n) % folds == f) for f in range(folds)]
    smallest = n - int(max(p.sum() for p in parts))
    choices = dict(estimators(smallest, K))
    held_out = [(shrunk_mean(X[~held]), X[~held], X[held]) for held in parts]
    covs = {name: [_firm(make(kept - mu)) for mu, kept, _ in held_out] for name, make in choices.items()}
    scores = {
        name: sum(
            float(row_log_likelihoods(out - mu, cov).sum())
            for (mu, _, out), cov in zip(held_out, found, strict=True)
        )
        for name, found in covs.items()
    }
    best = max(scores, key=lambda name: scores[name])
    of_best = [(out - mu, cov) for (mu, _, out), cov in zip(held_out, covs[best], strict=True)]
    spread = sum(spread_likelihoods(Z, cov) for Z, cov in of_best)
    whole = [~np.isnan(H[held]).any(1) for held in parts]
    upside = upper_deviations([(Z[rows], cov) for (Z, cov), rows in zip(of_best, whole, strict=True)])
    weights = {name: float(np.exp(score - scores[best])) for name, score in scores.items()}
    taken = {name: weight for name, weight in weights.items() if weight > SLIGHT}
    # unbiased, and for a new row about an estimated mean: n/(n − 1) · (n + 1)/n
    cov = (n + 1) / (n - 1) * sum(w * _firm(choices[name](X - mean)) for name, w in taken.items())
    dof = DOFS[int(np.argmax(spread))]
    return CovarianceEstimate(mean, cov / sum(taken.values()), dof, best, upside, scores[best])


def upper_deviations(held_out: Sequence[tuple[Array, Array]], seen: int = 4, draws: int = 3) -> Array:
    """`(K,)`: the deviation of surprises upwards, in units of the model's, once `seen` candidates have been seen.

    `held_out` pairs centred rows `(m, K)` with the covariance of the others. `√(2 E[z⁺²])` is 1 for a normal `z`, and
    below where surprises go down; each candidate is drawn towards all of them (10 rows), all towards 1 (5 rows).
    """
    K = held_out[0][1].shape[0]
    seen = min(seen, max(1, K // 3))
    rng = np.random.default_rng(0)
    semi, count = np.zeros(K), np.zeros(K)
    for Z, cov in held_out:
        for row in np.repeat(np.arange(len(Z)), draws):
            A = rng.choice(K, seen, replace=False)
            W = np.linalg.solve(cov[np.ix_(A, A)], cov[A])
            var = np.maximum(np.diag(cov) - np.einsum("ak,ak->k", cov[A], W), FLOOR)
            z = (Z[row] - Z[row, A] @ W) / np.sqrt(var)
            z[A] = 0.0
            semi += 2.0 * np.minimum(np.maximum(z, 0.0), FARTHEST) ** 2 / draws
            count += 1.0 / draws
            count[A] -= 1.0 / draws
    rows = sum(len(Z) for Z, _ in held_out)
    if rows == 0 or K < 2:
        return np.ones(K)
    overall = float(semi.sum() / count.sum())
    overall = (rows * overall + 5.0) / (rows + 5.0)
    return np.asarray(np.sqrt((semi + 10.0 * overall) / (count + 10.0)))


def spread_likelihoods(Z: Array, cov: Array) -> Array:
    """Returns for each of `DOFS` how likely the rows' spreads are, each row's common level left out.

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

"""A Gaussian over the cells candidate × rung of one tenant, learned from earlier tenants' curves.

`H` is `(n, K, E)`: one table for each earlier tenant, NaN where nothing was measured. With few rows and many cells
the sample covariance alone is far from the truth; it is blended with a structured one,
`ρ·(11ᵀ ⊗ A + D(hκ + (1 − h)I)D ⊗ B) + (1 − ρ)·sample`: a tenant's common level by rung (`A`), and what a candidate has
of its own by rung (`B`), shared with candidates of similar features through the kernel `κ` and scaled by how far the
candidate strays (`D`). `ρ`, `h` and the kernel's length are those that make rows held out likeliest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array, cholesky, solve_lower
from easel.optimise.kernels import Matern52

STRUCTURED = (0.3, 0.5, 0.8)
SHARED = (0.9, 0.97)
LENGTHS = (0.5, 0.8, 1.2)
"""What `ρ`, `h` and the kernel's length (in units of the features' range) are chosen from."""
COMPLETE_ROWS = 5
"""From so many complete earlier tenants on, mean and covariance are theirs alone."""
HALF_TRUST = 5.0
"""So many incomplete or fewer tenants count as much as what was assumed without any."""
CANDIDATE_ROWS = 3.0
"""How far a candidate strays is shrunk towards the mean of all by as many rows."""
EM_STEPS = 3
DOF = 10.0


@dataclass(frozen=True, eq=False)
class ColdCells:
    """What is assumed without history: `mean` `(K, E)`, `level` and `own` `(E, E)`, and the noise variance.

    `between` `(K, K)`, where given, is how the candidates vary together at every rung.
    """

    mean: Array
    level: Array
    own: Array
    noise: float
    between: Array | None = None


@dataclass(frozen=True)
class Blend:
    """`structured` is ρ, `shared` is h; `length` None is a world without features."""

    structured: float = 0.5
    shared: float = 0.9
    length: float | None = 0.8


@dataclass(frozen=True, eq=False)
class CellPrior:
    """`mean` `(K·E,)` and `cov` `(K·E, K·E)`; a candidate's rungs lie side by side."""

    mean: Array
    cov: Array
    blend: Blend


def learn_cells(H: Array, cold: ColdCells, features: Array | None = None) -> CellPrior:
    """Learns from rows `(n, K, E)`, complete or not, `features` `(K, d)` and what is assumed without any.

    Gaps are filled by expectation–maximisation, with the cold prior as a few rows: candidates that an earlier
    policy did not choose are not taken to be as good as those it chose.
    """
    rows = H[~np.isnan(H).all((1, 2))]
    blend = _without_history(features)
    if len(rows) == 0:
        return _cold_prior(cold, features, blend)
    gaps = np.isnan(rows)
    if not gaps.any():
        if len(rows) >= COMPLETE_ROWS:
            blend = _likeliest(rows, cold.noise, features)
        return _blended(rows, cold, features, blend)
    prior = _cold_prior(cold, features, blend)
    for _ in range(EM_STEPS):
        filled = np.array([_filled(row, prior, cold.noise) for row in rows])
        prior = _blended(filled, cold, features, blend, complete=False)
    return prior


def _without_history(features: Array | None) -> Blend:
    return Blend(structured=0.8, length=None if features is None else 0.8)


def _cold_prior(cold: ColdCells, features: Array | None, blend: Blend) -> CellPrior:
    K, E = cold.mean.shape
    cov = _structured(cold.level, cold.own, np.ones(K), features, blend)
    if cold.between is not None:
        cov = cov + np.kron(cold.between, np.ones((E, E)))
    return CellPrior(cold.mean.ravel().copy(), cov + cold.noise * np.eye(K * E), blend)


def _blended(
    rows: Array, cold: ColdCells, features: Array | None, blend: Blend, complete: bool = True
) -> CellPrior:
    learned = _learned(rows, cold.noise, features, blend)
    n = len(rows)
    if complete and n >= COMPLETE_ROWS:
        return learned
    assumed = _cold_prior(cold, features, blend)
    trust = n / (n + HALF_TRUST)
    mean = trust * learned.mean + (1.0 - trust) * assumed.mean
    return CellPrior(mean, trust * learned.cov + (1.0 - trust) * assumed.cov, blend)


def _learned(rows: Array, noise: float, features: Array | None, blend: Blend) -> CellPrior:
    n, K, E = rows.shape
    mean = rows.mean(0)
    away = rows - mean
    free = max(n - 1, 1)
    level = away.mean(1)
    rest = away - level[:, None, :]
    common = level.T @ level / free
    own = np.einsum("nke,nkf->ef", rest, rest) / (free * max(K - 1, 1))
    each = (rest * rest).sum((0, 2)) / (free * E)
    typical = max(float(each.mean()), 1e-12)
    spread = np.sqrt((free * each + CANDIDATE_ROWS * typical) / ((free + CANDIDATE_ROWS) * typical))
    cov = blend.structured * _structured(common, own, spread, features, blend)
    flat = away.reshape(n, K * E)
    cov += (1.0 - blend.structured) * (flat.T @ flat) / free
    # for a new row about an estimated mean
    cov *= (n + 1) / n
    cov[np.diag_indices(K * E)] += noise
    return CellPrior(mean.ravel(), cov, blend)


def _structured(level: Array, own: Array, spread: Array, features: Array | None, blend: Blend) -> Array:
    K = len(spread)
    alike = np.eye(K)
    if features is not None and blend.length is not None:
        unit = _unit(features)
        kernel = Matern52(np.full(unit.shape[1], np.log(blend.length)))(unit, unit)
        alike = blend.shared * kernel + (1.0 - blend.shared) * alike
    return np.asarray(np.kron(np.outer(spread, spread) * alike, own) + np.kron(np.ones((K, K)), level))


def _unit(features: Array) -> Array:
    low, high = features.min(0), features.max(0)
    return np.asarray((features - low) / np.where(high > low, high - low, 1.0))


def _filled(row: Array, prior: CellPrior, noise: float) -> Array:
    """`(K, E)`: gaps replaced by what the known cells let expect there."""
    flat = row.ravel()
    known = ~np.isnan(flat)
    G = prior.cov[np.ix_(known, known)] + noise * np.eye(int(known.sum()))
    surprise = np.linalg.solve(G, flat[known] - prior.mean[known])
    expected = prior.mean + prior.cov[:, known] @ surprise
    return np.asarray(np.where(known, flat, expected).reshape(row.shape))


def _likeliest(rows: Array, noise: float, features: Array | None) -> Blend:
    """The blend that gives rows held out the highest likelihood, judged at three rungs."""
    E = rows.shape[2]
    few = rows[:, :, sorted({0, E // 2, E - 1})]
    folds = [np.arange(len(rows)) % 3 == f for f in range(3)]
    shapes: list[tuple[float, float | None]] = [(0.0, None)]
    if features is not None:
        shapes = list(itertools.product(SHARED, LENGTHS))

    def score(blend: Blend) -> float:
        return sum(_likelihood(few[held], _learned(few[~held], noise, features, blend)) for held in folds)

    return max((Blend(r, h, length) for r in STRUCTURED for h, length in shapes), key=score)


def _likelihood(rows: Array, prior: CellPrior) -> float:
    """Returns the likelihood of Student rows up to a constant: one tenant far off must not decide."""
    L = cholesky(prior.cov)
    e = solve_lower(L, (rows.reshape(len(rows), -1) - prior.mean).T)
    m = len(prior.mean)
    log_det = float(np.log(np.diag(L)).sum())
    return float((-log_det - 0.5 * (DOF + m) * np.log1p((e * e).sum(0) / DOF)).sum())

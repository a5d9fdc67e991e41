"""Mean and covariance from rows with missing cells, by expectation–maximisation under a prior worth a few rows.

What a policy runs next depends on what it has seen, and on nothing that it has not: cells are then missing at random,
given the others of their row, and the likelihood of what was seen needs no model of why the rest was not. Filling the
gaps with column means says that the untried are as good as the tried; their conditional distributions do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from easel.optimise.arrays import Array, cholesky, solve_lower
from easel.optimise.covariance import FLOOR

STEPS = 20
SETTLED = 5e-3
"""Changes of the mean below this share of a deviation end the iteration."""


@dataclass(frozen=True)
class Moments:
    """`mean` `(K,)`, `cov` `(K, K)`."""

    mean: Array
    cov: Array

    def likelihoods(self, H: Array) -> Array:
        """`(n,)` `log N` of the cells of each row of `H` `(n, K)` that are there."""
        out = np.zeros(len(H))
        for rows, seen in _patterns(H):
            if not seen.any():
                continue
            L = cholesky(self.cov[np.ix_(seen, seen)] + FLOOR * np.eye(int(seen.sum())))
            W = solve_lower(L, (H[rows][:, seen] - self.mean[seen]).T)
            log_det = 2.0 * float(np.log(np.diag(L)).sum())
            out[rows] = -0.5 * ((W * W).sum(0) + log_det + seen.sum() * np.log(2 * np.pi))
        return out

    def completed(self, H: Array) -> tuple[Array, Array]:
        """`H` with the conditional means in its gaps, and the sum over rows of the gaps' covariances `(K, K)`."""
        X, spread = H.copy(), np.zeros_like(self.cov)
        for rows, seen in _patterns(H):
            gone = ~seen
            if not gone.any():
                continue
            if not seen.any():
                X[rows] = self.mean
                spread += len(rows) * self.cov
                continue
            across = self.cov[np.ix_(seen, gone)]
            L = cholesky(self.cov[np.ix_(seen, seen)] + FLOOR * np.eye(int(seen.sum())))
            A = solve_lower(L, across)
            W = solve_lower(L, A, transposed=True)
            X[np.ix_(rows, np.flatnonzero(gone))] = self.mean[gone] + (H[rows][:, seen] - self.mean[seen]) @ W
            spread[np.ix_(gone, gone)] += len(rows) * (self.cov[np.ix_(gone, gone)] - A.T @ A)
        return X, spread


def _patterns(H: Array) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]]:
    """Rows that lack the same cells, together."""
    there = ~np.isnan(H)
    if there.all():
        yield np.arange(len(H)), np.ones(H.shape[1], dtype=bool)
        return
    kinds, place = np.unique(there, axis=0, return_inverse=True)
    place = place.reshape(-1)
    for number, seen in enumerate(kinds):
        yield np.flatnonzero(place == number), seen


def posterior_moments(H: Array, before: Moments, rows: float) -> Moments:
    """The likeliest mean and covariance given `H` `(n, K)`, gaps and all, and a prior worth `rows` rows.

    Maximum a posteriori under a normal–inverse-Wishart prior centred at `before`: its mean and its covariance count as
    `rows` earlier rows that had them. With no rows in `H` it is `before`.
    """
    n = len(H)
    if n == 0:
        return before
    now = before
    for _ in range(STEPS):
        X, spread = now.completed(H)
        mean = (rows * before.mean + X.sum(0)) / (rows + n)
        Z, moved = X - mean, before.mean - mean
        cov = (rows * (before.cov + np.outer(moved, moved)) + Z.T @ Z + spread) / (rows + n)
        step = np.abs(mean - now.mean) / np.sqrt(np.maximum(np.diag(cov), FLOOR))
        now = Moments(mean, cov)
        if step.max() < SETTLED:
            break
    return now

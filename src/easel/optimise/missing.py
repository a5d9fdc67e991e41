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

from easel.optimise.arrays import Array
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
        for rows, place, seen in _patterns(H):
            L = np.linalg.cholesky(self._among(seen))
            Z = np.where(np.isnan(H[rows]), 0.0, H[rows] - self.mean)
            W = np.linalg.solve(L[place], Z[:, :, None])[:, :, 0]
            log_det = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
            out[rows] = -0.5 * ((W * W).sum(1) + log_det[place] + seen.sum(1)[place] * np.log(2 * np.pi))
        return out

    def completed(self, H: Array) -> tuple[Array, Array]:
        """`H` with the conditional means in its gaps, and the sum over rows of the gaps' covariances `(K, K)`."""
        X, spread = H.copy(), np.zeros_like(self.cov)
        for rows, place, seen in _patterns(H):
            both = seen[:, :, None] & seen[:, None, :]
            P = np.where(both, np.linalg.inv(self._among(seen)), 0.0)
            Z = np.where(np.isnan(H[rows]), 0.0, H[rows] - self.mean)
            told = self.mean + np.einsum("nk,nkj->nj", Z, P[place]) @ self.cov
            X[rows] = np.where(np.isnan(H[rows]), told, H[rows])
            left = self.cov - self.cov @ P @ self.cov
            neither = ~seen[:, :, None] & ~seen[:, None, :]
            count = np.bincount(place, minlength=len(seen))
            spread += np.einsum("p,pij->ij", count.astype(float), np.where(neither, left, 0.0))
        return X, spread

    def _among(self, seen: npt.NDArray[np.bool_]) -> Array:
        """`(p, K, K)`: for each row of `seen` `(p, K)` the covariance of what was seen, and ones for the rest."""
        K = len(self.mean)
        both = seen[:, :, None] & seen[:, None, :]
        return np.where(both, self.cov + FLOOR * np.eye(K), np.eye(K))


AT_ONCE = 2_000_000
"""Cells of covariances that are worked on together: 16 MB."""


def _patterns(
    H: Array,
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.bool_]]]:
    """Rows by what they lack, a few patterns at once: rows `(m,)`, the pattern of each `(m,)`, patterns `(p, K)`."""
    kinds, place = np.unique(~np.isnan(H), axis=0, return_inverse=True)
    place = place.reshape(-1)
    step = max(1, AT_ONCE // max(H.shape[1] ** 2, 1))
    for first in range(0, len(kinds), step):
        rows = np.flatnonzero((place >= first) & (place < first + step))
        yield rows, place[rows] - first, kinds[first : first + step]


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

"""A Gaussian process over a finite set of candidates, with rank-one updates.

`f ~ N(μ, S)` over `K` candidates. After `t` observations the posterior is held as `mean` `(K,)`, `var` `(K,)`
and the rows `V = L⁻¹ S[A, :]` `(t, K)` of the growing Cholesky factor, so that one more observation costs
`O(tK)` and no `(K, K)` matrix is kept per tenant: `S` is shared by everybody with the same prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array


@dataclass(frozen=True, eq=False)
class FiniteGP:
    """Posterior over `K` candidates; immutable, `observed` returns the next one.

    `noise` is the observation's variance. With finite `dof` `ν > 2` the common scale of the tenant is unknown
    and the process is Student's: after `t` observations with squared standardised surprise `q` in total, the
    Gaussian variance is multiplied by `(ν − 2 + q)/(ν − 2 + t)`. A tenant whose results lie closer to the
    predictions than history promised gets narrower predictions, one that surprises gets wider ones.
    """

    cov: Array
    mean: Array
    var: Array
    rows: Array
    noise: float
    dof: float = np.inf
    surprise: float = 0.0

    @classmethod
    def prior(cls, mean: Array, cov: Array, noise: float, dof: float = np.inf) -> Self:
        """`mean` `(K,)`, `cov` `(K, K)` symmetric and positive semi-definite, singular allowed."""
        K = len(mean)
        if cov.shape != (K, K):
            raise InvalidInput(f"a covariance of {cov.shape} does not fit {K} candidates")
        if not (np.isfinite(mean).all() and np.isfinite(cov).all()):
            raise InvalidInput("prior mean and covariance must be finite")
        if dof <= 2:
            raise InvalidInput(f"{dof} degrees of freedom have no variance: give more than 2")
        return cls(cov, np.array(mean), np.diag(cov).clip(min=0.0), np.empty((0, K)), noise, dof)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def scale(self) -> float:
        """The factor on all variances that this tenant's own surprises justify."""
        if np.isinf(self.dof):
            return 1.0
        return (self.dof - 2.0 + self.surprise) / (self.dof - 2.0 + self.count)

    @property
    def sd(self) -> Array:
        """`(K,)` posterior standard deviations."""
        return np.asarray(np.sqrt(self.var * self.scale))

    def column(self, k: int) -> Array:
        """`(K,)` posterior covariances with candidate `k`."""
        return self.scale * self._column(k)

    def _column(self, k: int) -> Array:
        return np.asarray(self.cov[k] - self.rows[:, k] @ self.rows)

    def observed(self, k: int, y: float, extra_noise: float = 0.0) -> Self:
        """After result `y` of candidate `k`; a NaN (a failed trial) teaches nothing about quality.

        `extra_noise` is the variance on top of `noise`, as of a trial on part of the data.
        """
        column = self._column(k)
        v = max(float(column[k]), 0.0) + self.noise + extra_noise
        if not np.isfinite(y) or v <= 0.0:
            return self
        row = column / np.sqrt(v)
        innovation = (y - float(self.mean[k])) / np.sqrt(v)
        return replace(
            self,
            mean=self.mean + row * innovation,
            var=(self.var - row * row).clip(min=0.0),
            rows=np.concatenate([self.rows, row[None, :]]),
            surprise=self.surprise + innovation**2,
        )

    def believed(self, k: int) -> Self:
        """After a result of `k` that is as expected: what a running trial will at least teach."""
        # its surprise counts as one unit, so that the scale is left alone
        seen = self.observed(k, float(self.mean[k]))
        return replace(seen, surprise=self.surprise + 1.0 * (seen.count > self.count))

"""A Gaussian process over a finite set of candidates, with rank-one updates.

`f ~ N(μ, S)` over `K` candidates. After `t` observations the posterior is held as `mean` `(K,)`, `var` `(K,)`
and the rows `V = L⁻¹ S[A, :]` `(t, K)` of the growing Cholesky factor, so that one more observation costs
`O(tK)` and no `(K, K)` matrix is kept per tenant: `S` is shared by everybody with the same prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array


@dataclass(frozen=True, eq=False)
class FiniteGP:
    """Posterior over `K` candidates; immutable, `observed` returns the next one.

    `noise` is the observation's variance. With finite `dof` `ν > 2` the tenant's spread is unknown and the
    process is Student's: with standardised surprises `e = L⁻¹(y − μ_A)` and `u = L⁻¹1`, the part of the
    surprise that no common level explains is `q = e·e − (u·e)²/(u·u)`, on `t − 1` degrees of freedom, and the
    Gaussian variance is multiplied by `(ν − 2 + q)/(ν − 2 + t − 1)`. A tenant whose results lie closer to the
    predictions than history promised gets narrower predictions, one that surprises gets wider ones; that a
    tenant is easier or harder as a whole says nothing about its spread.
    """

    cov: Array
    mean: Array
    var: Array
    rows: Array
    noise: float
    dof: float = np.inf
    surprises: Array = field(default_factory=lambda: np.empty(0))
    levels: Array = field(default_factory=lambda: np.empty(0))
    held: float | None = None

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
        if self.held is not None:
            return self.held
        if np.isinf(self.dof) or self.count < 2:
            return 1.0
        e, u = self.surprises, self.levels
        q = float(e @ e) - float(u @ e) ** 2 / max(float(u @ u), 1e-12)
        return (self.dof - 2.0 + max(q, 0.0)) / (self.dof - 3.0 + self.count)

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
        """Returns the belief after result `y` of candidate `k`; a NaN (a failed trial) teaches nothing about quality.

        `extra_noise` is the variance on top of `noise`, as of a trial on part of the data.
        """
        column = self._column(k)
        v = max(float(column[k]), 0.0) + self.noise + extra_noise
        if not np.isfinite(y) or v <= 0.0:
            return self
        row = column / np.sqrt(v)
        innovation = (y - float(self.mean[k])) / np.sqrt(v)
        level = (1.0 - float(self.rows[:, k] @ self.levels)) / np.sqrt(v)
        return replace(
            self,
            mean=self.mean + row * innovation,
            var=(self.var - row * row).clip(min=0.0),
            rows=np.concatenate([self.rows, row[None, :]]),
            surprises=np.append(self.surprises, innovation),
            levels=np.append(self.levels, level),
        )

    def believed(self, k: int) -> Self:
        """Returns the belief after a result of `k` that is as expected: what a running trial will at least teach.

        The spread stays as it is: the trial has not surprised anybody yet.
        """
        seen = self.observed(k, float(self.mean[k]))
        return replace(seen, held=self.scale)

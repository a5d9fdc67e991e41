"""One Gaussian process over correlated tenants and candidates: `cov(f_ik, f_jl) = B_ij S_kl`.

A result of one tenant moves its kin. As in `finite.py` the posterior is kept as mean, variance and the rows of
the growing Cholesky factor; one more observation costs `O(tNK)`, one pass over the rows. NumPy or torch: on a
GPU the rows stay there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import is_tensor, like, namespace


@dataclass
class _Rows:
    """An append-only buffer `(capacity, N·K)` that versions of one process share; `used` rows are taken."""

    values: Any
    used: int = 0


@dataclass(frozen=True, eq=False)
class JointGP:
    """Posterior over `N` tenants × `K` candidates: `mean`, `var` `(N, K)`; `B` `(N, N)`, `S` `(K, K)`.

    Immutable to its users: `observed` returns the next version and appends to the rows that versions share
    (an older version that is continued gets its own copy).
    """

    B: Any
    S: Any
    mean: Any
    var: Any
    noise: float
    rows: _Rows
    count: int = 0

    @classmethod
    def prior(cls, mean: Any, B: Any, S: Any, noise: float, capacity: int = 64) -> Self:
        """`mean` `(N, K)`; rows are held in single precision, sums in the precision of `mean`."""
        N, K = mean.shape
        if B.shape != (N, N) or S.shape != (K, K):
            raise InvalidInput(f"similarity {B.shape} and covariance {S.shape} do not fit {N} × {K}")
        xp = namespace(S)
        var = xp.einsum("ii->i", B)[:, None] * xp.einsum("ii->i", S)[None, :]
        return cls(B, S, mean, var, noise, _Rows(_empty(S, capacity, N * K)))

    @property
    def sd(self) -> Any:
        """`(N, K)`."""
        return namespace(self.var).sqrt(self.var)

    def columns(self, i: int, k: int) -> Any:
        """`(N, K)` posterior covariances of everything with candidate `k` of tenant `i`."""
        N, K = self.mean.shape
        rows = self.rows.values[: self.count]
        explained = rows[:, i * K + k] @ rows
        prior = self.B[i][:, None] * self.S[k][None, :]
        return prior - like(self.mean, explained).reshape(N, K)

    def observed(self, i: int, k: int, y: float, extra_noise: float = 0.0) -> Self:
        """Returns the belief after result `y` of candidate `k` for tenant `i`; NaN teaches nothing."""
        column = self.columns(i, k)
        v = max(float(column[i, k]), 0.0) + self.noise + extra_noise
        if not np.isfinite(y) or v <= 0.0:
            return self
        row = column / np.sqrt(v)
        innovation = (y - float(self.mean[i, k])) / np.sqrt(v)
        rows = self._room()
        rows.values[self.count] = row.reshape(-1)
        rows.used = self.count + 1
        return replace(
            self,
            mean=self.mean + row * innovation,
            var=(self.var - row * row).clip(min=0.0),
            rows=rows,
            count=self.count + 1,
        )

    def _room(self) -> _Rows:
        rows = self.rows
        full = self.count == len(rows.values)
        if rows.used == self.count and not full:
            return rows
        bigger = _empty(self.S, 2 * self.count + 1 if full else len(rows.values), rows.values.shape[1])
        bigger[: self.count] = rows.values[: self.count]
        return _Rows(bigger, self.count)

    def within(self, i: int) -> tuple[Any, Any]:
        """Mean `(K,)` and posterior covariance `(K, K)` of tenant `i`."""
        K = self.mean.shape[1]
        own = self.rows.values[: self.count, i * K : (i + 1) * K]
        return self.mean[i], self.B[i, i] * self.S - like(self.mean, own.T @ own)


def _empty(reference: Any, n: int, width: int) -> Any:
    if is_tensor(reference):
        import torch

        return torch.empty((n, width), dtype=torch.float32, device=reference.device)
    return np.empty((n, width), dtype=np.float32)

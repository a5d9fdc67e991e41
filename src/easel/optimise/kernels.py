"""Covariance functions with analytic gradients.

A kernel is a frozen value with a parameter vector `theta` (logarithms wherever a parameter is positive), box
`bounds` and a Gaussian `prior` on `theta`. Fitting never forms the `(p, n, n)` array of derivatives: `pull`
takes the derivative of any scalar with respect to the matrix, `W = ∂l/∂K`, back to `∂l/∂theta`.

Inputs `X` are `(n, d)`; a kernel may look at some columns only (`columns`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from easel.optimise.arrays import Array, like, namespace


@dataclass(frozen=True)
class Box:
    """Limits and a log-normal (Gaussian in `theta`) prior of one parameter; `spread=inf` is no prior."""

    low: float
    high: float
    centre: float = 0.0
    spread: float = np.inf


class Kernel(ABC):
    """A positive semi-definite function of two points."""

    theta: Array

    @property
    @abstractmethod
    def boxes(self) -> tuple[Box, ...]:
        """One per entry of `theta`."""

    @abstractmethod
    def at(self, theta: Array) -> Kernel:
        """The same kernel with other parameters, `theta` `(p,)`."""

    @abstractmethod
    def __call__(self, X: Any, Z: Any) -> Any:
        """`(n, m)` covariances between `X` `(n, d)` and `Z` `(m, d)`; NumPy or torch."""

    @abstractmethod
    def diag(self, X: Any) -> Any:
        """`(n,)`: `k(x, x)` for each row, without the matrix."""

    @abstractmethod
    def pull(self, X: Array, W: Array) -> Array:
        """`(p,)`: `Σ_ij W_ij ∂K_ij/∂theta_k` for symmetric `W` `(n, n)` over `K = k(X, X)`."""

    def __mul__(self, other: Kernel) -> Product:
        return Product(self, other)

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other)


def _pick(X: Any, columns: tuple[int, ...] | None) -> Any:
    return X if columns is None else X[:, list(columns)]


LENGTH = Box(np.log(0.01), np.log(100.0), np.log(0.5), 1.0)
"""Length scales on unit-scaled inputs: half the cube, a factor of e either way."""
VARIANCE = Box(np.log(1e-3), np.log(1e3), 0.0, 1.5)
"""Signal variance on standardised outputs."""


@dataclass(frozen=True)
class Constant(Kernel):
    """`k = v`, `theta = (log v,)`: the signal variance when multiplied with a correlation."""

    theta: Array = field(default_factory=lambda: np.zeros(1))
    box: Box = VARIANCE

    @property
    def boxes(self) -> tuple[Box, ...]:
        return (self.box,)

    def at(self, theta: Array) -> Self:
        return replace(self, theta=theta)

    def __call__(self, X: Any, Z: Any) -> Any:
        return like(X, np.full((X.shape[0], Z.shape[0]), np.exp(self.theta[0])))

    def diag(self, X: Any) -> Any:
        return like(X, np.full(X.shape[0], np.exp(self.theta[0])))

    def pull(self, X: Array, W: Array) -> Array:
        return np.array([np.exp(self.theta[0]) * W.sum()])


@dataclass(frozen=True)
class Stationary(Kernel):
    """A correlation of the scaled distance `r² = Σ_d (x_d − z_d)²/ℓ_d²`, `theta = (log ℓ_d,)` (ARD).

    One length for all columns when `theta` has one entry.
    """

    theta: Array
    columns: tuple[int, ...] | None = None
    box: Box = LENGTH

    @abstractmethod
    def _correlation(self, r2: Any) -> Any:
        """`ρ` from `r²`, elementwise."""

    @abstractmethod
    def _slope(self, r2: Any) -> Any:
        """`−2 dρ/d(r²)`, elementwise, finite at zero."""

    @classmethod
    def ard(cls, d: int, columns: tuple[int, ...] | None = None, box: Box = LENGTH) -> Self:
        """`d` separate lengths, at the centre of their prior."""
        return cls(np.full(d, box.centre), columns, box)

    @property
    def boxes(self) -> tuple[Box, ...]:
        return (self.box,) * len(self.theta)

    def at(self, theta: Array) -> Self:
        return replace(self, theta=theta)

    def _scaled(self, X: Any) -> Any:
        Xc = _pick(X, self.columns)
        return Xc / like(Xc, np.exp(self.theta))

    def __call__(self, X: Any, Z: Any) -> Any:
        return self._correlation(squared_distances(self._scaled(X), self._scaled(Z)))

    def diag(self, X: Any) -> Any:
        return like(X, np.ones(X.shape[0]))

    def pull(self, X: Array, W: Array) -> Array:
        # ∂ρ/∂log ℓ_d = slope(r²)·(x_d − z_d)²/ℓ_d², and for symmetric M
        # Σ_ij M_ij (u_i − u_j)² = 2 Σ_i u_i² Σ_j M_ij − 2 uᵀMu: matrix products, no (n, n, d) array.
        U = self._scaled(X)
        M = W * self._slope(squared_distances(U, U))
        per_dimension: Array = 2.0 * (M.sum(1) @ (U * U) - np.einsum("id,id->d", U, M @ U))
        return per_dimension if len(self.theta) == U.shape[1] else per_dimension.sum(keepdims=True)


def squared_distances(U: Any, V: Any) -> Any:
    """`(n, m)` squared Euclidean distances between the rows of `U` and of `V`, never negative."""
    r2 = (U * U).sum(1)[:, None] + (V * V).sum(1)[None, :] - 2.0 * (U @ V.T)
    return r2.clip(min=0.0)


class Matern52(Stationary):
    """`ρ(r) = (1 + √5 r + 5r²/3) exp(−√5 r)`."""

    def _correlation(self, r2: Any) -> Any:
        xp = namespace(r2)
        a = xp.sqrt(5.0 * r2)
        return (1.0 + a + 5.0 / 3.0 * r2) * xp.exp(-a)

    def _slope(self, r2: Any) -> Any:
        xp = namespace(r2)
        a = xp.sqrt(5.0 * r2)
        return 5.0 / 3.0 * (1.0 + a) * xp.exp(-a)


class Matern32(Stationary):
    """`ρ(r) = (1 + √3 r) exp(−√3 r)`."""

    def _correlation(self, r2: Any) -> Any:
        xp = namespace(r2)
        a = xp.sqrt(3.0 * r2)
        return (1.0 + a) * xp.exp(-a)

    def _slope(self, r2: Any) -> Any:
        xp = namespace(r2)
        return 3.0 * xp.exp(-xp.sqrt(3.0 * r2))


class SquaredExponential(Stationary):
    """`ρ(r) = exp(−r²/2)`."""

    def _correlation(self, r2: Any) -> Any:
        return namespace(r2).exp(-0.5 * r2)

    def _slope(self, r2: Any) -> Any:
        return namespace(r2).exp(-0.5 * r2)


@dataclass(frozen=True)
class Linear(Kernel):
    """`k = v_0 + Σ_d v_d x_d z_d`, `theta = (log v_0, log v_1, ...)`."""

    theta: Array
    columns: tuple[int, ...] | None = None
    box: Box = VARIANCE

    @property
    def boxes(self) -> tuple[Box, ...]:
        return (self.box,) * len(self.theta)

    def at(self, theta: Array) -> Self:
        return replace(self, theta=theta)

    def __call__(self, X: Any, Z: Any) -> Any:
        v = np.exp(self.theta)
        Xc = _pick(X, self.columns)
        return v[0] + (Xc * like(Xc, v[1:])) @ _pick(Z, self.columns).T

    def diag(self, X: Any) -> Any:
        v = np.exp(self.theta)
        Xc = _pick(X, self.columns)
        return v[0] + (Xc * Xc) @ like(Xc, v[1:])

    def pull(self, X: Array, W: Array) -> Array:
        v = np.exp(self.theta)
        Xc = _pick(X, self.columns)
        slopes: Array = np.concatenate([[W.sum()], np.einsum("id,id->d", Xc, W @ Xc)])
        return v * slopes


Basis = Callable[[Any], Any]
"""Columns of features `(n, q)` from one column of data sizes `s` `(n,)`."""


def quality_basis(s: Any) -> Any:
    """Fabolas for quality: `φ(s) = (1, (1 − s)²)`, flat at the full data."""
    return namespace(s).stack([s * 0.0 + 1.0, (1.0 - s) ** 2], 1)


def cost_basis(s: Any) -> Any:
    """Fabolas for log cost: `φ(s) = (1, s)`."""
    return namespace(s).stack([s * 0.0 + 1.0, s], 1)


def log_cost_basis(s: Any) -> Any:
    """The physical one for log cost, `cost ∝ s^α`: `φ(s) = (1, log s)`."""
    xp = namespace(s)
    return xp.stack([s * 0.0 + 1.0, xp.log(s)], 1)


FREE = Box(-10.0, 10.0, 0.0, 1.0)


@dataclass(frozen=True)
class FiniteRank(Kernel):
    """`k(s, s') = φ(s)ᵀ Σ φ(s')` in one column, `Σ = GGᵀ`, `G` lower triangular.

    `theta` holds `G` row by row, its diagonal as logarithms; for `q` features there are `q(q+1)/2` entries.
    """

    column: int
    basis: Basis = quality_basis
    theta: Array = field(default_factory=lambda: np.zeros(3))
    box: Box = FREE

    @property
    def _rank(self) -> int:
        return int((np.sqrt(8 * len(self.theta) + 1) - 1) / 2)

    @property
    def boxes(self) -> tuple[Box, ...]:
        return (self.box,) * len(self.theta)

    def at(self, theta: Array) -> Self:
        return replace(self, theta=theta)

    def _factor(self) -> Array:
        q = self._rank
        G = np.zeros((q, q))
        G[np.tril_indices(q)] = self.theta
        G[np.diag_indices(q)] = np.exp(np.diag(G))
        return G

    def _features(self, X: Any) -> Any:
        F = self.basis(X[:, self.column])
        return F @ like(F, self._factor())

    def __call__(self, X: Any, Z: Any) -> Any:
        return self._features(X) @ self._features(Z).T

    def diag(self, X: Any) -> Any:
        F = self._features(X)
        return (F * F).sum(1)

    def pull(self, X: Array, W: Array) -> Array:
        # ∂⟨W, ΦGGᵀΦᵀ⟩/∂G = 2 ΦᵀWΦ G; the diagonal by the chain rule through exp.
        Phi = self.basis(X[:, self.column])
        G = self._factor()
        dG = 2.0 * (Phi.T @ W @ Phi) @ G
        dG[np.diag_indices_from(dG)] *= np.diag(G)
        return np.asarray(dG[np.tril_indices(self._rank)])


@dataclass(frozen=True)
class _Pair(Kernel):
    a: Kernel
    b: Kernel

    @property
    def theta(self) -> Array:  # type: ignore[override]  # a pair's parameters are its parts'
        return np.concatenate([self.a.theta, self.b.theta])

    @property
    def boxes(self) -> tuple[Box, ...]:
        return self.a.boxes + self.b.boxes

    def at(self, theta: Array) -> Self:
        p = len(self.a.theta)
        return replace(self, a=self.a.at(theta[:p]), b=self.b.at(theta[p:]))


class Product(_Pair):
    """`k = k_a · k_b`."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.a(X, Z) * self.b(X, Z)

    def diag(self, X: Any) -> Any:
        return self.a.diag(X) * self.b.diag(X)

    def pull(self, X: Array, W: Array) -> Array:
        return np.concatenate([self.a.pull(X, W * self.b(X, X)), self.b.pull(X, W * self.a(X, X))])


class Sum(_Pair):
    """`k = k_a + k_b`."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.a(X, Z) + self.b(X, Z)

    def diag(self, X: Any) -> Any:
        return self.a.diag(X) + self.b.diag(X)

    def pull(self, X: Array, W: Array) -> Array:
        return np.concatenate([self.a.pull(X, W), self.b.pull(X, W)])

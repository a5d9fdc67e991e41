"""Exact Gaussian-process regression: fit by marginal likelihood, predict, condition, sample.

`y` is standardised inside (`offset`, `scale`), so kernels and their priors live on unit variance; everything
that comes out is in the units of `y`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.errors import InvalidInput
from easel.optimise.arrays import Array, cholesky, like, namespace, solve_lower, to_numpy
from easel.optimise.kernels import Box, Kernel

NOISE = Box(np.log(1e-6), np.log(1.0), np.log(1e-2), 2.0)
"""Observation noise variance relative to the spread of `y`, in logarithms."""


@dataclass(frozen=True)
class Joint:
    """A Gaussian over `m` points: `mean` `(m,)`, `cov` `(m, m)`."""

    mean: Any
    cov: Any

    @property
    def sd(self) -> Any:
        xp = namespace(self.cov)
        return xp.sqrt(xp.einsum("ii->i", self.cov).clip(min=0.0))

    def observed(self, i: int, y: float, noise: float = 0.0) -> Joint:
        """Returns the posterior after `y` at point `i` with noise variance `noise`: one rank-one update, O(m²)."""
        k = self.cov[:, i]
        v = float(k[i]) + noise
        if v <= 0.0:
            return self
        gain = k / v
        return Joint(self.mean + gain * (y - self.mean[i]), self.cov - gain[:, None] * k[None, :])

    def gain(self, i: int, noise: float = 0.0) -> Any:
        """`(m,)`: by how much the means move per standard deviation of surprise at point `i`.

        Observing `i` moves the mean to `mean + gain·ε`, `ε ~ N(0, 1)`, and takes `gain gainᵀ` off the
        covariance: all that a one-step lookahead needs, in O(m).
        """
        k = self.cov[:, i]
        v = float(k[i]) + noise
        return k / np.sqrt(v) if v > 0.0 else k * 0.0

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """`(count, m)` joint draws, by an eigendecomposition: singular covariances are ordinary."""
        w, V = np.linalg.eigh(to_numpy(self.cov))
        root = V * np.sqrt(w.clip(min=0.0))
        z = rng.standard_normal((count, len(w)))
        return np.asarray(to_numpy(self.mean) + z @ root.T)


@dataclass(frozen=True)
class GP:
    """`f ~ GP(0, k)` on standardised outputs, seen at `X` `(n, d)` with noise variance `noise`.

    `L Lᵀ = k(X, X) + diag(noise)`, `alpha = (k(X, X) + noise)⁻¹ (y − offset)/scale`. `extra` `(n,)` is noise
    variance known per observation, in standardised units, on top of `noise`.
    """

    kernel: Kernel
    noise: float
    X: Any
    y: Any
    offset: float
    scale: float
    L: Any
    alpha: Any
    extra: Any = 0.0

    @classmethod
    def on(
        cls,
        kernel: Kernel,
        X: Any,
        y: Any,
        noise: float,
        *,
        offset: float | None = None,
        scale: float | None = None,
        extra: Any = None,
    ) -> GP:
        """Fits with given hyperparameters. `noise` is relative to `scale²`, `extra` `(n,)` is in units of `y²`."""
        if len(y) != len(X):
            raise InvalidInput(f"{len(X)} points but {len(y)} values: give one value per point")
        values = to_numpy(y)
        if not (np.isfinite(values).all() and np.isfinite(to_numpy(X)).all()):
            raise InvalidInput("points and values must be finite: drop failed observations before fitting")
        if offset is None:
            offset = float(values.mean()) if len(values) else 0.0
        if scale is None:
            scale = float(values.std()) if len(values) > 1 else 1.0
        scale = scale if scale > 1e-12 * max(1.0, abs(offset)) else 1.0
        known = like(X, np.zeros(len(values)) if extra is None else to_numpy(extra) / scale**2)
        xp = namespace(X)
        L = cholesky(kernel(X, X) + xp.diag(known + noise))
        z = (like(X, values) - offset) / scale
        alpha = solve_lower(L, solve_lower(L, z), transposed=True)
        return cls(kernel, noise, X, like(X, values), offset, scale, L, alpha, known)

    def posterior(self, Z: Any) -> tuple[Any, Any]:
        """Mean `(m,)` and standard deviation `(m,)` of `f` at `Z` `(m, d)`, O(n²m)."""
        xp = namespace(self.L)
        k = self.kernel(self.X, Z)
        v = solve_lower(self.L, k)
        var = (self.kernel.diag(Z) - (v * v).sum(0)).clip(min=0.0)
        return self.offset + self.scale * (k.T @ self.alpha), self.scale * xp.sqrt(var)

    def joint(self, Z: Any) -> Joint:
        """The joint posterior of `f` over `Z` `(m, d)`."""
        k = self.kernel(self.X, Z)
        v = solve_lower(self.L, k)
        cov = self.kernel(Z, Z) - v.T @ v
        return Joint(self.offset + self.scale * (k.T @ self.alpha), self.scale**2 * cov)

    def between(self, Z: Any, V: Any) -> Any:
        """`(m, q)` posterior covariances between `Z` `(m, d)` and `V` `(q, d)`."""
        a = solve_lower(self.L, self.kernel(self.X, Z))
        b = solve_lower(self.L, self.kernel(self.X, V))
        return self.scale**2 * (self.kernel(Z, V) - a.T @ b)

    def conditioned(self, x: Any, y: float) -> GP:
        """Returns the process with one more observation at `x` `(d,)`: the factor grows by one row, O(n²), no refit."""
        xp = namespace(self.L)
        n = self.X.shape[0]
        row = like(self.L, np.zeros((n + 1, n + 1)))
        below = solve_lower(self.L, self.kernel(self.X, x[None, :])[:, 0])
        corner = float(self.kernel.diag(x[None, :])[0]) + self.noise - float(below @ below)
        row[:n, :n] = self.L
        row[n, :n] = below
        row[n, n] = np.sqrt(max(corner, 1e-10))
        X = xp.concatenate([self.X, x[None, :]])
        values = xp.concatenate([self.y, like(self.L, [y])])
        known = xp.concatenate([self.extra, like(self.L, [0.0])])
        z = (values - self.offset) / self.scale
        alpha = solve_lower(row, solve_lower(row, z), transposed=True)
        return replace(self, X=X, y=values, L=row, alpha=alpha, extra=known)

    def log_likelihood(self) -> float:
        """`log p(z | X)` of the standardised values: `−½zᵀα − Σ log L_ii − n/2 log 2π`."""
        z = (to_numpy(self.y) - self.offset) / self.scale
        L = to_numpy(self.L)
        n = len(z)
        return float(-0.5 * z @ to_numpy(self.alpha) - np.log(np.diag(L)).sum() - 0.5 * n * np.log(2 * np.pi))


def fit(
    kernel: Kernel,
    X: Array,
    y: Array,
    *,
    noise: Box = NOISE,
    extra: Array | None = None,
    starts: int = 1,
    rng: np.random.Generator | None = None,
    max_steps: int = 50,
) -> GP:
    """The GP whose hyperparameters maximise marginal likelihood × prior (MAP), by L-BFGS-B.

    The first start is where `kernel` stands (so that a refit after one more observation is short), further
    `starts` are drawn from the priors with `rng`. `X` `(n, d)`, `y` `(n,)`, `extra` `(n,)` known noise
    variances in units of `y²`. With fewer than two observations the kernel is kept as it is.
    """
    if len(y) < 2:
        return GP.on(kernel, X, y, float(np.exp(noise.centre)), extra=extra)
    reference = GP.on(kernel, X, y, 1.0, extra=extra)
    z = (reference.y - reference.offset) / reference.scale
    boxes = (*kernel.boxes, noise)
    objective = _negative_log_posterior(kernel, X, z, reference.extra, boxes)
    low, high = np.array([b.low for b in boxes]), np.array([b.high for b in boxes])
    points = [np.append(kernel.theta, noise.centre)]
    if starts > 1:
        if rng is None:
            raise InvalidInput("several starts need a random generator: pass rng")
        centre = np.array([b.centre for b in boxes])
        spread = np.array([b.spread if np.isfinite(b.spread) else 1.0 for b in boxes])
        points += [centre + spread * rng.standard_normal(len(boxes)) for _ in range(starts - 1)]
    best = None
    for point in points:
        found = scipy.optimize.minimize(
            objective,
            point.clip(low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": max_steps},
        )
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    theta = np.asarray(best.x)
    return GP.on(kernel.at(theta[:-1]), X, y, float(np.exp(theta[-1])), extra=extra)


def _negative_log_posterior(
    kernel: Kernel, X: Array, z: Array, extra: Array, boxes: tuple[Box, ...]
) -> Callable[[Array], tuple[float, Array]]:
    """`theta ↦ (−log p(z|X,θ) − log p(θ), gradient)`; `theta` is the kernel's, then log noise."""
    centre = np.array([b.centre for b in boxes])
    precision = np.array([1.0 / b.spread**2 for b in boxes])
    eye = np.eye(len(z))

    def objective(theta: Array) -> tuple[float, Array]:
        k, s2 = kernel.at(theta[:-1]), float(np.exp(theta[-1]))
        L = cholesky(k(X, X) + np.diag(extra + s2))
        Li = solve_lower(L, eye)
        Ki = Li.T @ Li
        alpha = Ki @ z
        # ∂(−log p)/∂K = ½(K⁻¹ − ααᵀ)
        W = 0.5 * (Ki - np.outer(alpha, alpha))
        gradient = np.append(k.pull(X, W), s2 * np.trace(W))
        away = theta - centre
        value = 0.5 * z @ alpha + np.log(np.diag(L)).sum() + 0.5 * precision @ (away * away)
        return float(value), gradient + precision * away

    return objective

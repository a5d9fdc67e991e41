"""Parametric forms of `log seconds`: the paper's log-linear model, one with interactions, and one after
Amdahl.

A form is a function of a parameter vector `theta` `(p,)` and log features `X` `(n, d)`, with a Gaussian prior
on `theta` given as centre and precision (0: no prior). The last columns of `X` may be `cpus` and `memory_mb`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from easel.price.runs import GPUS, Array, RunTable

QUOTA_POWER = 0.03
"""How far from one the power of a quota below one processor is expected: half of the time takes twice as long."""
GPU_POWER = (-1.0, 2.0)
"""What a GPU does to the work, as a power of `gpus + 1` and its doubt: nothing, or a factor of a hundred."""
MEMORY_POWER = 0.02
"""How far from zero memory's power is expected: enough memory is enough."""


@dataclass(frozen=True)
class CoefficientPrior:
    """`theta ~ N(centre, diag(1/precision))`, both `(p,)`."""

    centre: Array
    precision: Array


@dataclass(frozen=True)
class RuntimeForm(ABC):
    """One shape of the runtime function over the features `names`."""

    names: tuple[str, ...]
    kind: ClassVar[str]
    robust: ClassVar[bool] = True

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of the entries of `theta`; equal names mean equal meaning, which transfer relies on."""

    @property
    @abstractmethod
    def prior(self) -> CoefficientPrior: ...

    @abstractmethod
    def starts(self, table: RunTable) -> list[Array]:
        """Where the search for `theta` begins."""

    @abstractmethod
    def value(self, theta: Array, X: Array) -> tuple[Array, Array]:
        """`log seconds` `(n,)` and its Jacobian in `theta` `(n, p)`."""


class _LinearForm(RuntimeForm):
    """`log t = B(X)·theta` for some basis `B`."""

    @abstractmethod
    def basis(self, X: Array) -> Array:
        """`(n, p)`."""

    def starts(self, table: RunTable) -> list[Array]:
        B, prior = self.basis(table.X), self.prior
        # Ridge towards the prior; the tiny floor settles columns that never varied on zero.
        A = B.T @ B + np.diag(np.maximum(prior.precision, 1e-9))
        return [prior.centre + np.linalg.solve(A, B.T @ (table.y - B @ prior.centre))]

    def value(self, theta: Array, X: Array) -> tuple[Array, Array]:
        B = self.basis(X)
        return B @ theta, B


class LogLinear(_LinearForm):
    """ACAI §4.2.3: `log t = log α + Σ β_i log x_i`, by least squares."""

    kind = "log-linear"
    robust = False

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("log_scale", *(f"power_{name}" for name in self.names))

    @property
    def prior(self) -> CoefficientPrior:
        p = len(self.parameters)
        return CoefficientPrior(np.zeros(p), np.full(p, 1e-9))

    def basis(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X])


class Powers(LogLinear):
    """Log-linear with memory's power held close to zero, and outliers held at bay.

    Least squares always finds some power for memory, and a provisioner that believes it buys memory for nothing.
    """

    kind = "powers"
    robust = True

    @property
    def prior(self) -> CoefficientPrior:
        memory = [name == "power_memory_mb" for name in self.parameters]
        return CoefficientPrior(np.zeros(len(memory)), np.where(memory, MEMORY_POWER**-2, 1e-9))


class Interactions(_LinearForm):
    """Log-linear plus `(log cpus)²` and every product of two log features, shrunk towards zero."""

    kind = "interactions"

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        d = len(self.names)
        squares = [(j, j) for j in range(d) if self.names[j] == "cpus"]
        return squares + list(itertools.combinations(range(d), 2))

    @property
    def parameters(self) -> tuple[str, ...]:
        crossed = (f"cross_{self.names[i]}_{self.names[j]}" for i, j in self._pairs)
        return ("log_scale", *(f"power_{name}" for name in self.names), *crossed)

    @property
    def prior(self) -> CoefficientPrior:
        first, pairs = 1 + len(self.names), len(self._pairs)
        return CoefficientPrior(
            np.zeros(first + pairs), np.append(np.full(first, 1e-9), np.full(pairs, 1 / 0.3**2))
        )

    def basis(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X, *(X[:, i] * X[:, j] for i, j in self._pairs)])


class Amdahl(RuntimeForm):
    """A constant part, a start-up on one processor, and work of which a serial share does not scale
    (seconds):

    `t = D + F·c₁^{−κ} + W·∏ x_i^{β_i}·c₁^{−κ}·(s + (1 − s)/c₂)`, `c₁ = min(c, 1)`, `c₂ = max(c, 1)`.

    Below one processor a quota slows everything down; above it only the parallel share gets faster. This is
    the curvature in the number of processors that the log-linear model misses. Memory enters as one more
    power, held close to zero: enough memory is enough. GPUs, where they were profiled, are a power of `gpus + 1`
    that only the work feels: loading the data is not faster for having one.
    """

    kind = "amdahl"

    @property
    def _arguments(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name != "cpus")

    @property
    def parameters(self) -> tuple[str, ...]:
        powers = (f"power_{name}" for name in self._arguments)
        return ("log_constant", "log_startup", "log_work", "logit_serial", "quota_power", *powers)

    @property
    def prior(self) -> CoefficientPrior:
        known = {"memory_mb": (0.0, MEMORY_POWER), GPUS: GPU_POWER}
        powers = [known.get(name, (1.0, 0.4)) for name in self._arguments]
        centre = np.array([-3.0, 0.0, 0.0, -1.5, 1.0, *(middle for middle, _ in powers)])
        spread = np.array([2.0, 4.0, 20.0, 1.5, QUOTA_POWER, *(sd for _, sd in powers)])
        return CoefficientPrior(centre, spread**-2)

    def starts(self, table: RunTable) -> list[Array]:
        quickest = float(np.min(table.y))
        tries = []
        for share in (0.05, 0.4, 0.9):
            theta = self.prior.centre.copy()
            theta[0], theta[1] = quickest - 4.0, quickest + np.log(share)
            work = self.value(theta, table.X)[0]
            theta[2] = float(np.median(table.y - work))
            tries.append(theta)
        return tries

    def value(self, theta: Array, X: Array) -> tuple[Array, Array]:
        columns = [j for j, name in enumerate(self.names) if name != "cpus"]
        z = X[:, columns]
        c = X[:, self.names.index("cpus")] if "cpus" in self.names else np.zeros(len(X))
        log_d, log_f, log_w, logit, kappa = theta[:5]
        slow, fast = np.minimum(c, 0.0), np.maximum(c, 0.0)
        s = 1.0 / (1.0 + np.exp(-logit))
        spread = s + (1.0 - s) * np.exp(-fast)
        # Everything in logarithms, so that absurd parameters on the way saturate instead of overflowing.
        constant = np.full(len(X), log_d)
        startup = log_f - kappa * slow
        work = log_w + z @ theta[5:] - kappa * slow + np.log(spread)
        total = np.logaddexp(np.logaddexp(constant, startup), work)
        p_constant, p_startup, p_work = (np.exp(part - total) for part in (constant, startup, work))
        d_logit = p_work * (1.0 - np.exp(-fast)) * s * (1.0 - s) / spread
        d_kappa = -slow * (p_startup + p_work)
        J = np.column_stack([p_constant, p_startup, p_work, d_logit, d_kappa, p_work[:, None] * z])
        return total, J


class Growing(RuntimeForm):
    """A fixed part and one that grows with the arguments: `log(B + W·∏ x_i^{β_i})`. What memory does.

    Powers are expected near 1 (twice the rows, twice the arrays) or 0; the scales are free.
    """

    kind = "growing"

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("log_base", "log_grown", *(f"power_{name}" for name in self.names))

    @property
    def prior(self) -> CoefficientPrior:
        d = len(self.names)
        return CoefficientPrior(
            np.append([0.0, 0.0], np.full(d, 0.8)), np.append([1e-4, 1e-4], np.full(d, 1 / 0.5**2))
        )

    def starts(self, table: RunTable) -> list[Array]:
        least = float(np.min(table.y))
        grown = (
            np.log(np.maximum(np.exp(table.y - least) - 0.5, 0.05)) + least - table.X @ self.prior.centre[2:]
        )
        return [
            np.concatenate([[least + np.log(share), float(np.median(grown))], self.prior.centre[2:]])
            for share in (0.3, 0.9)
        ]

    def value(self, theta: Array, X: Array) -> tuple[Array, Array]:
        base, grown = np.full(len(X), theta[0]), theta[1] + X @ theta[2:]
        total = np.logaddexp(base, grown)
        p_grown = np.exp(grown - total)
        return total, np.column_stack([np.exp(base - total), p_grown, p_grown[:, None] * X])


FORMS: dict[str, type[RuntimeForm]] = {form.kind: form for form in (LogLinear, Powers, Interactions, Amdahl)}
CANDIDATES: tuple[type[RuntimeForm], ...] = (Powers, Interactions, Amdahl)
"""Among which leave-one-out chooses; the paper's own form is kept for comparison."""

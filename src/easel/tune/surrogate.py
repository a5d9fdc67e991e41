"""Gaussian processes over configurations and fidelities, one per modelled quantity.

Two families of kernel, chosen by `paper`:

- Fabolas's: Matérn 5/2 over `x` times, for each fidelity, a finite-rank kernel in a basis of `s`: `(1, (1−s)²)` for
  quality, `(1, s)` for log time.
- Ours: for quality a linear trend plus Matérn 5/2 over `(x, log s)`, since a product kernel that has only seen small
  `s` goes back to its prior at s = 1 and forgets which configurations did well; for log time Matérn 5/2 around the
  prior mean `Σ log s`: until told otherwise, time is proportional to the data and to the number of epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from easel.declare.goal import COST, TIME
from easel.optimise.gp import GP, fit
from easel.optimise.kernels import (
    Constant,
    FiniteRank,
    Kernel,
    Linear,
    Matern52,
    cost_basis,
    quality_basis,
)
from easel.tune.belief import Array, Beliefs, assemble, is_log
from easel.tune.encode import EncodedPoints
from easel.tune.state import State

# Hyperparameters are learnt from at most this many observations; the posterior uses all of them.
_LEARN_FROM = 150
_STEPS = 30


def inputs(table: EncodedPoints, *, fidelities: bool) -> Array:
    """`(m, d)`, or `(m, d + 2f)`: `x`, then each `s`, then each `u` (see `EncodedPoints`)."""
    return np.concatenate([table.x, table.s, table.u], axis=1) if fidelities else table.x


def kernel_for(quantity: str, width: int, fidelities: int, *, paper: bool) -> Kernel:
    x = tuple(range(width))
    if paper:
        kernel: Kernel = Constant() * Matern52.ard(width, x)
        for f in range(fidelities):
            kernel = kernel * FiniteRank(width + f, cost_basis if is_log(quantity) else quality_basis)
        return kernel
    columns = x + tuple(range(width + fidelities, width + 2 * fidelities))
    rough = Constant() * Matern52.ard(len(columns), columns)
    if is_log(quantity) or not fidelities:
        return rough
    return Linear(np.zeros(len(columns) + 1), columns) + rough


def prior_mean(quantity: str, table: EncodedPoints, *, fidelities: bool, paper: bool) -> Array:
    """`(m,)` on the model's scale."""
    if fidelities and not paper and is_log(quantity):
        return np.asarray(np.log(table.s).sum(axis=1))
    return np.zeros(len(table))


def refits_at(n: int) -> int:
    """The last size of the history at which hyperparameters are learnt again: 2, 3, …, 10, then by tenths."""
    size = 2
    while (following := max(size + 1, int(size * 1.1))) <= n:
        size = following
    return size


@lru_cache(maxsize=64)
def _learn(
    quantity: str, width: int, fidelities: int, paper: bool, shape: tuple[int, int], x: bytes, y: bytes
) -> tuple[Array, float]:
    """Hyperparameters from these observations; remembered since between refits every suggestion needs them."""
    kernel = kernel_for(quantity, width, fidelities, paper=paper)
    X, Y = np.frombuffer(x).reshape(shape), np.frombuffer(y)
    fitted = fit(kernel, X, Y, max_steps=_STEPS)
    return fitted.kernel.theta, fitted.noise


def forget() -> None:
    """Drop remembered hyperparameters: what a benchmark does before it measures."""
    _learn.cache_clear()


@dataclass(frozen=True)
class Surrogates:
    """Fitted processes by quantity, `of[q]` on the model's scale (see `belief.forward`)."""

    state: State
    of: Mapping[str, GP]
    fidelities: bool
    paper: bool
    # What earlier studies believe: the prior mean of this one, so that only the difference is to be learnt.
    before: Surrogates | None = None

    def mean_of(self, quantity: str, table: EncodedPoints) -> Array:
        """`(m,)`: the prior mean on the model's scale."""
        if self.before is not None:
            gp = self.before.of[quantity]
            return np.asarray(gp.posterior(self.inputs(table))[0] + self.before.mean_of(quantity, table))
        return prior_mean(quantity, table, fidelities=self.fidelities, paper=self.paper)

    def inputs(self, table: EncodedPoints) -> Array:
        return inputs(table, fidelities=self.fidelities)

    def beliefs(self, table: EncodedPoints) -> Beliefs:
        Z = self.inputs(table)
        of = {}
        for name, gp in self.of.items():
            mean, sd = gp.posterior(Z)
            of[name] = mean + self.mean_of(name, table), sd
        problem = self.state.problem
        return assemble(problem.goal, table.price, of, rated=problem.space.rates is not None)


def learn(state: State, *, fidelities: bool = True, paper: bool = False) -> Surrogates:
    """One process per modelled quantity. Running trials count as observed at their predicted mean.

    A failed or unmeasured quality is read as the worst seen; an unmeasured time or cost is left out.
    """
    key = ("surrogates", fidelities, paper)
    if key not in state.memo:
        state.memo[key] = _learn_all(state, fidelities, paper)
    found: Surrogates = state.memo[key]
    return found


def _learn_all(state: State, fidelities: bool, paper: bool) -> Surrogates:
    earlier = state.before()
    if earlier is not None and not fidelities:
        earlier = earlier.at_full()
    before = None
    if earlier is not None and earlier.observations:
        before = learn(earlier, fidelities=fidelities, paper=paper)
    empty = Surrogates(state, {}, fidelities and bool(state.problem.space.fidelities), paper, before)
    seen = state.seen
    f = len(state.problem.space.fidelities) if fidelities else 0
    X = inputs(seen, fidelities=bool(f))
    of = {}
    for name in state.problem.measured:
        y = state.outcomes(name) - empty.mean_of(name, seen)
        keep = np.isfinite(state.measurements(name)) if name in (TIME, COST) else np.ones(len(y), dtype=bool)
        gp = _fit(name, seen.x.shape[1], f, paper, X[keep], y[keep])
        for row in inputs(state.problem.codec.table(state.pending), fidelities=bool(f)):
            gp = gp.conditioned(row, float(gp.posterior(row[None, :])[0][0]))
        of[name] = gp
    return replace(empty, of=of)


def _fit(quantity: str, width: int, fidelities: int, paper: bool, X: Array, y: Array) -> GP:
    kernel = kernel_for(quantity, width, fidelities, paper=paper)
    if len(y) < 2:
        return GP.on(kernel, X, y, 1e-2)
    n = refits_at(len(y))
    # Evenly spaced rows of a long history: the first ones are a design, the last ones crowd the optimum.
    rows = np.unique(np.linspace(0, n - 1, min(n, _LEARN_FROM)).astype(int))
    theta, noise = _learn(
        quantity, width, fidelities, paper, (len(rows), X.shape[1]), X[rows].tobytes(), y[rows].tobytes()
    )
    return GP.on(kernel.at(theta), X, y, noise)

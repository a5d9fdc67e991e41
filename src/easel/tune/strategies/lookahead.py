"""Expected reward and cost of exploration paths (thesis, algorithm 3), for all starting points at once.

A path starts at a candidate, imagines its outcome at each quadrature node, adds the imagined observation to the
trees, moves on to the candidate with the largest constrained improvement, and so on for `horizon` steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from easel.declare.goal import COST, TIME
from easel.optimise.acquire import expected_improvement, usable_cost
from easel.optimise.quadrature import normal_grid
from easel.tune.belief import Array, Beliefs
from easel.tune.encode import Ints
from easel.tune.state import State

if TYPE_CHECKING:
    from easel.tune.strategies.nephele import FittedEnsembles

Mask = npt.NDArray[np.bool_]
Gate = Callable[[State, Beliefs, "float | Array"], Mask]
# Paths handled together: large enough to amortise NumPy calls, small enough to stay in the cache.
_CHUNK = 8


class Lookahead:
    def __init__(
        self, state: State, fitted: FittedEnsembles, gate: Gate, gamma: float, nodes: tuple[int, int]
    ) -> None:
        self.state = state
        self.fitted = fitted
        self.gate = gate
        self.gamma = gamma
        self.rng = state.rng("lookahead")
        self.unit = state.problem.goal.budget.kind.value
        # `nodes[0]` points on what is spent, `nodes[1]` on everything else.
        spent = (TIME, COST)
        counts = tuple(nodes[0] if name in spent else nodes[1] for name in fitted.quantities)
        self.z, self.w = normal_grid(counts)  # (k, q), (k,)

    def explore(self, starts: Ints, free: Mask, horizon: int) -> tuple[Array, Array]:
        """`starts`: `(p,)` candidates → total discounted reward and cost of the path from each, `(p,)`."""
        trees = self.fitted.trees()
        rewards, costs = np.empty(len(starts)), np.empty(len(starts))
        goal = self.state.problem.goal
        best = self.state.best_value
        # Without an incumbent any feasible value improves on the worst in sight.
        base = self.fitted.beliefs(self.state, trees)
        belief = base.of[goal.quantity]
        reference = (
            float((goal.sign * belief.mean - 3 * belief.sd).min())
            if best is None
            else goal.sign * belief.scaled(best)
        )
        for begin in range(0, len(starts), _CHUNK):
            at = starts[begin : begin + _CHUNK]
            p = len(at)
            rewards[begin : begin + p], costs[begin : begin + p] = self._paths(
                np.broadcast_to(trees, (p, *trees.shape)),
                np.broadcast_to(free, (p, len(free))),
                np.full(p, reference),
                np.full(p, self.state.left),
                at,
                horizon,
            )
        return rewards, costs

    def _paths(
        self, trees: Array, free: Mask, best: Array, left: Array, at: Ints, horizon: int
    ) -> tuple[Array, Array]:
        """`trees`: `(p, q, b, m)`, `free`: `(p, m)`, `best`, `left`, `at`: `(p,)`; `at` < 0 ends a path."""
        p = len(free)
        beliefs = self.fitted.beliefs(self.state, trees)
        rows = np.arange(p)
        reward = self._improvement(beliefs, best)[rows, at]
        spent = usable_cost(beliefs.cost_of(self.unit))[rows, at]
        ended = at < 0
        reward[ended], spent[ended] = 0.0, 0.0
        if horizon == 0 or ended.all():
            return reward, spent

        k = len(self.w)
        imagined = self._imagine(beliefs, rows, at)  # (p, k, q)
        table, leaves = self.fitted.table, self.fitted.leaves
        changed = self.fitted.forest.insert(
            table.features[at], leaves[..., at], table.features, leaves, self.rng
        )
        changed = np.moveaxis(changed, 2, 0)  # (p, q, b, m)
        after = np.where(changed[:, None], imagined[..., None, None], trees[:, None])
        after = after.reshape(p * k, *trees.shape[1:])
        free_ = np.repeat(free, k, axis=0)
        free_[np.arange(p * k), np.repeat(at, k)] = False
        then = self.fitted.beliefs(self.state, after)
        best_, left_ = self._update(imagined, at, np.repeat(best, k), np.repeat(left, k))
        omega = free_ & self.gate(self.state, then, left_[:, None]) & ~np.repeat(ended, k)[:, None]
        score = np.where(omega, self._improvement(then, best_), -1.0)
        next_at = np.where(omega.any(axis=1), score.argmax(axis=1), -1)
        r, c = self._paths(after, free_, best_, left_, next_at, horizon - 1)
        weight = self.gamma * self.w
        return reward + r.reshape(p, k) @ weight, spent + c.reshape(p, k) @ weight

    def _improvement(self, beliefs: Beliefs, best: Array) -> Array:
        """`EI_c` `(p, m)` over a best `(p,)` that differs from path to path."""
        goal = self.state.problem.goal
        belief = beliefs.of[goal.quantity]
        ei = expected_improvement(goal.sign * belief.mean, belief.sd, best[:, None])
        return np.asarray(ei * beliefs.probability())

    def _imagine(self, beliefs: Beliefs, rows: Ints, at: Ints) -> Array:
        """`(p, k, q)`: the outcome of each path's current candidate at each quadrature node."""
        mean = np.stack([beliefs.of[name].mean[rows, at] for name in self.fitted.quantities], axis=-1)
        sd = np.stack([beliefs.of[name].sd[rows, at] for name in self.fitted.quantities], axis=-1)
        return mean[:, None] + sd[:, None] * self.z

    def _update(self, imagined: Array, at: Ints, best: Array, left: Array) -> tuple[Array, Array]:
        """The incumbent's value and the budget left after the imagined outcomes, each `(p · k,)`."""
        goal, problem = self.state.problem.goal, self.state.problem
        k = imagined.shape[1]
        price = np.repeat(self.fitted.table.price[at], k)
        flat = imagined.reshape(-1, imagined.shape[-1])
        seen: dict[str, Array] = {name: flat[:, i] for i, name in enumerate(self.fitted.quantities)}
        if problem.space.rates is not None and TIME in seen:
            seen[COST] = seen[TIME] + np.log(np.maximum(price, 1e-300))
        ok = np.ones(len(flat), dtype=bool)
        for constraint in goal.constraints:
            log = constraint.quantity in (TIME, COST)
            bound = np.log(max(constraint.bound, 1e-300)) if log else constraint.bound
            value = seen[constraint.quantity]
            ok &= value >= bound if constraint.at_least else value <= bound
        value = goal.sign * seen[goal.quantity]
        improved = np.where(ok, np.maximum(best, value), best)
        used = np.exp(seen[self.unit]) if self.unit in seen else np.ones(len(flat))
        return improved, left - used

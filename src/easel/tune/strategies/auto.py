"""The default strategy: picks by the shape of the goal.

- A goal judged at any fidelity (a model trained on a subsample may be deployed): Nephele.
- A goal judged at full fidelity: the test, at whatever fidelity, that is expected to improve the *recommendation*
  most per cost. Fabulinus asks what a test tells about where the optimum is; this asks what that is worth, one
  step ahead, within the budget that is left.
- A goal with constraints in a space without a fidelity: `EI_c`, within the budget that is left. There is no cheap
  look then, and the model's own recommendation is never followed against what was measured.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from easel.declare.goal import At
from easel.declare.space import Point
from easel.errors import InvalidInput
from easel.optimise.quadrature import normal_grid
from easel.records.study import Finished, Recommendation
from easel.tune.belief import Array, Beliefs, CandidateBelief
from easel.tune.encode import Ints
from easel.tune.state import State
from easel.tune.strategies.entropy import SURE, Fabolas, Outlook, representatives
from easel.tune.strategies.hyperband import Hyperband, Ledger
from easel.tune.strategies.improvement import EiC
from easel.tune.strategies.nephele import Nephele
from easel.tune.strategy import Factory, PointChoice, Strategy

# Candidates are scored in blocks that fit the cache.
_BLOCK = 256
# Configurations in the halving that opens an unconstrained study.
_STARTERS = 27


class Auto:
    """`initial`: trials before the models are asked; other options go to the strategy that is picked."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._picked: dict[Factory, Strategy] = {}
        # A wrong option is reported when the study is declared, not when it first asks.
        known = {"initial", "overhead", "horizon", "trees", "initial_budget"}
        if unknown := sorted(set(options) - known):
            raise InvalidInput(
                f"auto takes {', '.join(sorted(known))}; it does not take {', '.join(unknown)}"
            )

    def _pick(self, state: State) -> Strategy:
        kind, taken = _kind(state)
        if kind not in self._picked:
            self._picked[kind] = kind(**{k: v for k, v in self._options.items() if k in taken})
        return self._picked[kind]

    def suggest(self, state: State) -> PointChoice | Finished:
        return self._pick(state).suggest(state)

    def recommend(self, state: State) -> Recommendation | None:
        return self._pick(state).recommend(state)


class AffordableEiC(EiC):
    """`EI_c` among the points that the budget left over is expected to pay; where none is, the cheapest."""

    def _score(self, state: State, beliefs: Beliefs) -> Array:
        cost = beliefs.cost_of(state.problem.goal.budget.kind.value)
        affordable = cost <= state.left
        return np.where(affordable, super()._score(state, beliefs), -np.inf) if affordable.any() else -cost


class ValueOfInformation(Fabolas):
    """Expected gain of the recommendation's value per cost.

    The value of recommending `x` is its predicted quality above the worst, times a factor that rises from 0 where
    `x` is as likely feasible as not to 1 where it is sure. After a test both change: the means move along their
    covariance with the test, the deviations shrink; the expectation is taken by Gauss–Hermite quadrature over the
    surprise in quality and the surprise in the constrained quantities.
    """

    constrained = True
    nearly = 0.97

    def __init__(self, *, initial: int | None = None, overhead: float = 0.0, nodes: int = 5) -> None:
        super().__init__(initial=initial, overhead=overhead, representatives=120)
        self.nodes = nodes

    def _start(self, state: State) -> Point | None:
        """Starts one round of successive halving where nothing constrains: it finds out which fidelities tell anything.

        With constraints that round would be spent on configurations that cannot be deployed; see `Fabolas._start`.
        """
        if not self._halving(state):
            return super()._start(state)
        ledger = Ledger.read(state)
        starters = list(islice(ledger.starters(0), _STARTERS))
        rung = Hyperband()
        choice = (
            rung.fresh(state, ledger, 0)
            if len(starters) < _STARTERS
            else rung.promote(state, ledger, starters, 0)
        )
        return choice.point if isinstance(choice, PointChoice) else None

    @staticmethod
    def _halving(state: State) -> bool:
        few = state.problem.space.combinations < 20 * _STARTERS
        return bool(state.problem.space.fidelities) and not state.problem.goal.constraints and not few

    def recommend(self, state: State) -> Recommendation | None:
        """What the models predict; during the halving, the best on the highest rung."""
        if self._halving(state) and len(state.observations) < 1.5 * _STARTERS:
            return Hyperband().recommend(state)
        return super().recommend(state)

    def _score(self, seen: Outlook) -> tuple[Ints, Array]:
        everything = np.arange(len(seen.offered))
        cost = seen.beliefs.cost_of(seen.state.problem.goal.budget.kind.value)[seen.offered]
        keep = everything[cost <= seen.state.left] if np.isfinite(seen.state.left) else everything
        if not len(keep):
            keep = np.array([int(np.argmin(cost))])
        return keep, self._value(seen, seen.offered[keep])

    def _value(self, seen: Outlook, tests: Ints) -> Array:
        """`(c,)`: `E max_x v'(x) − max_x v(x)` for each candidate test."""
        goal, models = seen.state.problem.goal, seen.models
        reps = representatives(seen.at_target, self.representatives, constrained=True)
        Z, C = models.inputs(seen.target)[reps], models.inputs(seen.table)[tests]
        mean = goal.sign * seen.at_target.of[goal.quantity].mean[reps]
        low = float(mean.min())
        names = tuple(dict.fromkeys(seen.modelled(q) for q in goal.quantities))
        gains = {name: self._gains(seen, name, C, Z) for name in names}
        own = seen.modelled(goal.quantity)

        def value(moved: Array, beliefs: list[CandidateBelief]) -> Array:
            p = np.ones(1)
            for constraint, belief in zip(goal.constraints, beliefs, strict=True):
                p = p * belief.probability(constraint)
            sure = np.clip((p - 0.5) / (SURE - 0.5), 0.0, 1.0)
            return np.asarray(((moved - low) * sure).max(axis=-1))

        limits = [seen.at_target.of[c.quantity] for c in goal.constraints]
        now = float(value(mean, [CandidateBelief(b.mean[reps], b.sd[reps], b.log) for b in limits]))
        z, w = normal_grid((self.nodes,) * min(len(names), 2))
        if len(names) == 1:
            z = np.repeat(z, 2, axis=1)
        total = np.zeros(len(tests))
        for begin in range(0, len(tests), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            after = [
                np.sqrt(np.maximum(b.sd[reps] ** 2 - gains[seen.modelled(c.quantity)][block] ** 2, 0.0))
                for c, b in zip(goal.constraints, limits, strict=True)
            ]
            for (one, other), weight in zip(z, w, strict=True):
                moved = mean + goal.sign * gains[own][block] * one
                beliefs = []
                for c, b, sd in zip(goal.constraints, limits, after, strict=True):
                    name = seen.modelled(c.quantity)
                    surprise = one if name == own else other
                    beliefs.append(CandidateBelief(b.mean[reps] + gains[name][block] * surprise, sd, b.log))
                total[block] += weight * value(moved, beliefs)
        return np.maximum(total - now, 1e-12)

    @staticmethod
    def _gains(seen: Outlook, name: str, C: Array, Z: Array) -> Array:
        """`(c, m)`: by how much the mean at each representative moves per deviation of surprise at each test."""
        gp = seen.models.of[name]
        deviation = np.sqrt(gp.posterior(C)[1] ** 2 + gp.noise * gp.scale**2)
        return np.asarray(gp.between(C, Z) / np.maximum(deviation, 1e-12)[:, None])


def _kind(state: State) -> tuple[Factory, frozenset[str]]:
    """Returns the strategy for this goal and space, and which of the options it takes."""
    goal = state.problem.goal
    if goal.at is At.ANY:
        return Nephele, frozenset({"initial", "horizon", "trees", "initial_budget"})
    if goal.constraints and not state.problem.space.fidelities:
        return AffordableEiC, frozenset({"initial", "initial_budget"})
    return ValueOfInformation, frozenset({"initial", "overhead"})

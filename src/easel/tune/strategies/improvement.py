"""Bayesian optimisation by (constrained) expected improvement on Gaussian processes, on full data."""

from __future__ import annotations

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.acquire import per_cost
from easel.records.study import Finished, Recommendation
from easel.tune.belief import Array, Beliefs
from easel.tune.state import State
from easel.tune.strategies.plain import EXHAUSTED, observed_best, random_choice
from easel.tune.strategy import PointChoice
from easel.tune.surrogate import learn


class EiC:
    """`EI_c = EI · Π P(constraint holds)`; while no feasible point is known, the most likely feasible one."""

    constrained = True
    per_cost = False

    def __init__(self, *, initial: int | None = None, initial_budget: float | None = None) -> None:
        if initial is not None and initial < 1:
            raise InvalidInput(f"initial must be at least 1, not {initial}")
        self.initial = initial
        self.initial_budget = initial_budget

    def suggest(self, state: State) -> PointChoice | Finished:
        warm = state.warm_start(full_only=True)
        if warm is not None:
            return PointChoice(warm, {"reason": "best of an earlier study"})
        if self._starting(state):
            point = state.next_in_design(full_only=True)
            if point is not None:
                return PointChoice(point, {"reason": "initial design"})
        table = state.candidates("improvement")
        table = table.rows(np.flatnonzero(state.full(table) & state.free(table)))
        if not len(table):
            return random_choice(state, full_only=True) if state.problem.grid is None else EXHAUSTED
        beliefs = learn(state.at_full(), fidelities=False).beliefs(table)
        score = self._score(state, beliefs)
        order = np.argsort(-score, kind="stable")
        i = int(order[0])
        why: dict[str, float | str] = {"reason": type(self).__name__, "score": float(score[i])}
        if len(order) > 1:
            why["runner_up"] = float(score[order[1]])
        why |= {f"predicted_{name}": belief.at(i).median for name, belief in beliefs.of.items()}
        return PointChoice(table.points[i], why)

    def _score(self, state: State, beliefs: Beliefs) -> Array:
        if not self.constrained:
            best = self._unconstrained_best(state)
            score = beliefs.improvement(best)
        elif state.incumbent is None:
            score = beliefs.probability()
        else:
            score = beliefs.constrained_improvement(state.best_value)
        if self.per_cost:
            score = per_cost(score, beliefs.cost_of(state.problem.goal.budget.kind.value))
        return score

    def _unconstrained_best(self, state: State) -> float | None:
        y = state.measurements(state.problem.goal.quantity)
        y = y[np.isfinite(y)]
        if not len(y):
            return None
        return float(y.max() if state.problem.goal.sign > 0 else y.min())

    def recommend(self, state: State) -> Recommendation | None:
        """The best feasible observation; before there is one, the most likely feasible point."""
        found = observed_best(state)
        if found is not None or not state.observations:
            return found
        table = state.candidates("improvement")
        table = table.rows(np.flatnonzero(state.full(table)))
        beliefs = learn(state.at_full(), fidelities=False).beliefs(table)
        i = int(np.argmax(beliefs.probability()))
        return Recommendation(table.points[i], beliefs.estimates(i), float(beliefs.probability()[i]))

    def _starting(self, state: State) -> bool:
        if self.initial_budget is not None:
            return state.spent < self.initial_budget
        return len(state.observations) + len(state.pending) < (4 if self.initial is None else self.initial)


class EiCPerCost(EiC):
    """`EI_c` divided by the predicted cost."""

    per_cost = True


class Ei(EiC):
    """Blind to constraints: the plain baseline. It recommends the best observation, feasible or not."""

    constrained = False

    def recommend(self, state: State) -> Recommendation | None:
        y = np.where(state.full(state.seen), state.outcomes(state.problem.goal.quantity), np.nan)
        if not len(y) or not np.isfinite(y).any():
            return None
        i = int(np.nanargmax(state.problem.goal.sign * y))
        return Recommendation(state.observations[i].point, observed=state.values(state.observations[i]))


class CherryPick(EiC):
    """`EI_c` on full data that may stop early: once `least` points were tried and no candidate promises to improve
    the objective by more than `threshold` of its present value. By default it stops when the budget is spent."""

    def __init__(
        self,
        *,
        initial: int | None = None,
        initial_budget: float | None = None,
        least: int = 6,
        threshold: float | None = None,
    ) -> None:
        super().__init__(initial=3 if initial is None else initial, initial_budget=initial_budget)
        self.least = least
        self.threshold = threshold

    def suggest(self, state: State) -> PointChoice | Finished:
        choice = super().suggest(state)
        if isinstance(choice, Finished) or self.threshold is None or state.best_value is None:
            return choice
        score = choice.why.get("score")
        small = isinstance(score, float) and score < self.threshold * abs(state.best_value)
        if small and len(state.observations) >= self.least:
            return Finished("no candidate promises a further improvement")
        return choice

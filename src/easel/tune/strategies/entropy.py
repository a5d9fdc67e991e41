"""Fabolas and Fabulinus: test cheap subsamples to learn which configuration is best on the full data.

Both take the observation with the most information about the optimum at full fidelity per cost. Fabulinus
(thesis, ch. 4) weighs it by how likely the next incumbent meets the constraints (CEA) and tests s < 1 only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.declare.goal import COST, TIME
from easel.declare.space import Point
from easel.errors import InvalidInput
from easel.optimise.acquire import usable_cost
from easel.optimise.entropy import CUBIC_2D, Draws, constrained_information_gain, draw, information_gain
from easel.optimise.quadrature import normal_nodes
from easel.records.study import Finished, Recommendation
from easel.tune.belief import Array, Beliefs
from easel.tune.encode import EncodedPoints, Ints
from easel.tune.state import State
from easel.tune.strategies.hyperband import ladder
from easel.tune.strategies.plain import EXHAUSTED, random_choice
from easel.tune.strategy import PointChoice
from easel.tune.surrogate import Surrogates, learn

SURE = 0.99


@dataclass(frozen=True)
class Outlook:
    """Candidates to test, representatives at full fidelity, and what is believed about both."""

    state: State
    models: Surrogates
    table: EncodedPoints
    offered: Ints
    target: EncodedPoints
    beliefs: Beliefs
    at_target: Beliefs

    def draws(self, quantity: str, keep: Ints, count: int, purpose: str, sign: float = 1.0) -> Draws:
        """Joint draws of `sign · quantity` at the representatives `keep`, with their response to every candidate."""
        name = self.modelled(quantity)
        shift = self.models.mean_of(name, self.target)[keep]
        if name != quantity:
            shift = shift + np.log(self.target.price[keep])
        gp = self.models.of[name]
        Z, C = self.models.inputs(self.target)[keep], self.models.inputs(self.table)[self.offered]
        joint = gp.joint(Z)
        cross = gp.between(C, Z)
        sd = gp.posterior(C)[1]
        rng = self.state.rng(purpose)
        noise = gp.noise * gp.scale**2
        return draw(sign * (joint.mean + shift), joint.cov, sign * cross, sd**2, noise, count, rng)

    def modelled(self, quantity: str) -> str:
        """The process that stands for a quantity: with rates, log cost is log time plus log price."""
        return TIME if quantity == COST and COST not in self.models.of else quantity


def look(state: State, *, below_full: bool, paper: bool, purpose: str) -> Outlook | None:
    """Returns the next look; None when nothing is left to test."""
    table = state.candidates(purpose)
    full = state.full(table)
    free = state.free(table)
    if below_full and not full.all():
        free &= ~full
    offered = np.flatnonzero(free)
    if not len(offered):
        return None
    models = learn(state, paper=paper)
    target = table.rows(np.flatnonzero(full))
    return Outlook(state, models, table, offered, target, models.beliefs(table), models.beliefs(target))


def predicted_best(beliefs: Beliefs, nearly: float = 1.0) -> int:
    """The best predicted objective among those that are sure (0.99) to be feasible; where none is, among those whose
    probability is `nearly` that of the most likely one: the most likely one itself, as in the thesis, for 1."""
    p = beliefs.probability()
    ok = p >= min(SURE, nearly * float(p.max()))
    m = beliefs.goal.sign * beliefs.of[beliefs.goal.quantity].mean
    return int(np.argmax(np.where(ok, m, -np.inf)))


def representatives(beliefs: Beliefs, count: int, *, constrained: bool) -> Ints:
    """The target points that could be the optimum: highest upper confidence bounds, among the possible ones."""
    belief = beliefs.of[beliefs.goal.quantity]
    upper = beliefs.goal.sign * belief.mean + 2.0 * belief.sd
    if constrained:
        upper = np.where(beliefs.probability() > 0.01, upper, upper - 1e6)
    order = np.argsort(-upper, kind="stable")[:count]
    return np.sort(order)


class Fabolas:
    """Information gain about the unconstrained optimum at full fidelity, per cost plus `overhead`."""

    constrained = False
    below_full = False
    nearly = 1.0

    def __init__(
        self,
        *,
        initial: int | None = None,
        overhead: float = 0.0,
        representatives: int = 60,
        draws: int = 128,
        paper: bool = False,
        all_rungs: bool = False,
    ) -> None:
        if initial is not None and initial < 1:
            raise InvalidInput(f"initial must be at least 1, not {initial}")
        self.initial = initial
        self.overhead = overhead
        self.representatives = representatives
        self.draws = draws
        self.paper = paper
        self.all_rungs = all_rungs

    def suggest(self, state: State) -> PointChoice | Finished:
        point = None if self.below_full else state.warm_start()
        point = point or self._start(state)
        if point is not None:
            return PointChoice(point, {"reason": "initial design"})
        seen = look(state, below_full=self.below_full, paper=self.paper, purpose="entropy")
        if seen is None:
            return random_choice(state) if state.problem.grid is None else EXHAUSTED
        keep, score = self._score(seen)
        cost = usable_cost(seen.beliefs.cost_of(state.problem.goal.budget.kind.value)[seen.offered[keep]])
        per_cost = score / (cost + self.overhead)
        order = np.argsort(-per_cost, kind="stable")
        i = int(seen.offered[keep[order[0]]])
        why: dict[str, float | str] = {"reason": "information per cost", "score": float(per_cost[order[0]])}
        if len(order) > 1:
            why["runner_up"] = float(per_cost[order[1]])
        why |= {f"predicted_{name}": belief.at(i).median for name, belief in seen.beliefs.of.items()}
        return PointChoice(seen.table.points[i], why)

    def _gain(self, seen: Outlook) -> Array:
        goal = seen.state.problem.goal
        reps = representatives(seen.at_target, self.representatives, constrained=False)
        quality = seen.draws(goal.quantity, reps, self.draws, "quality draws", goal.sign)
        return np.maximum(information_gain(quality, *normal_nodes(3)), 1e-9)

    def _score(self, seen: Outlook) -> tuple[Ints, Array]:
        return np.arange(len(seen.offered)), self._gain(seen)

    def recommend(self, state: State) -> Recommendation | None:
        if not state.observations:
            return None
        table = state.candidates("entropy")
        table = table.rows(np.flatnonzero(state.full(table)))
        beliefs = learn(state, paper=self.paper).beliefs(table)
        if self.constrained:
            i = predicted_best(beliefs, self.nearly)
        else:
            goal = state.problem.goal
            i = int(np.argmax(goal.sign * beliefs.of[goal.quantity].mean))
        observed = state.observed_at(table.points[i])
        return Recommendation(
            table.points[i], beliefs.estimates(i), float(beliefs.probability()[i]), observed
        )

    def _start(self, state: State) -> Point | None:
        """Latin hypercube configurations at the lowest fidelity, then a climb of one good and cheap configuration
        through the fidelities below the full one, so that the models learn how quality and time scale.

        With `all_rungs` (the thesis's way) every configuration climbs.
        """
        wanted = 8 if self.initial is None else self.initial
        if state.before() is not None:
            return None
        rungs = state.problem.levels
        if len(rungs) > 1 and self.below_full:
            rungs = rungs[:-1]
        if self.all_rungs:
            plan = [{**point, **rung} for point in state.design(wanted) for rung in rungs]
            if len(state.observations) + len(state.pending) >= len(plan):
                return None
            return next(
                (p for p in plan if state.is_free(p) and not state.problem.space.is_forbidden(p)), None
            )
        asked = len(state.observations) + len(state.pending)
        if asked < wanted:
            plan = [{**point, **rungs[0]} for point in cheaper_half(state, state.design(2 * wanted))]
            return next(
                (p for p in plan if state.is_free(p) and not state.problem.space.is_forbidden(p)), None
            )
        climb = ladder(state)[1:-1]
        if asked >= wanted + len(climb) or not climb or not state.observations:
            return None
        rung = climb[asked - wanted]
        for i in promising(state):
            tested = {**state.observations[i].point, **rung}
            if state.is_free(tested) and not state.problem.space.is_forbidden(tested):
                return tested
        return None


def cheaper_half(state: State, points: Sequence[Point]) -> list[Point]:
    """The half with the lower price per hour, in the order given; all of them where there are no rates."""
    price = [state.problem.space.price_per_hour(p) or 0.0 for p in points]
    middle = float(np.median(price))
    return [p for p, at in zip(points, price, strict=True) if at <= middle]


def promising(state: State) -> list[int]:
    """Observations by what they cost, cheapest first: how things scale is learnt most cheaply there."""
    spent = [state.problem.goal.budget.spend(state.values(o)) for o in state.observations]
    return [int(i) for i in np.argsort(spent, kind="stable")]


class Fabulinus(Fabolas):
    """`ES_c = a_F · CEA`, evaluated for the best `filter` share of the candidates by CEA; tests s < 1 only."""

    constrained = True
    below_full = True
    nearly = 0.97

    def __init__(self, *, filter: float = 0.25, **others: object) -> None:  # noqa: A002 - the thesis's word
        super().__init__(**others)  # type: ignore[arg-type]  # passed on as they came
        if not 0 < filter <= 1:
            raise InvalidInput(f"filter is a share above 0 and at most 1, not {filter}")
        self.filter = filter

    def _gain(self, seen: Outlook) -> Array:
        """Information about the best *feasible* configuration: the draws of the constrained quantities take part."""
        goal = seen.state.problem.goal
        if not goal.constraints:
            return super()._gain(seen)
        reps = representatives(seen.at_target, self.representatives, constrained=True)
        quality = seen.draws(goal.quantity, reps, self.draws, "quality draws", goal.sign)
        limits = []
        for c in goal.constraints:
            sign = -1.0 if c.at_least else 1.0
            bound = sign * seen.at_target.of[c.quantity].scaled(c.bound)
            limits.append(
                (seen.draws(c.quantity, reps, self.draws, f"draws of {c}", sign), np.full(len(reps), bound))
            )
        return np.maximum(constrained_information_gain(quality, limits, *CUBIC_2D), 1e-9)

    def _score(self, seen: Outlook) -> tuple[Ints, Array]:
        cea = constrained_expected_accuracy(seen)
        count = max(1, int(np.ceil(self.filter * len(cea))))
        keep = np.sort(np.argsort(-cea, kind="stable")[:count])
        narrowed = Outlook(
            seen.state, seen.models, seen.table, seen.offered[keep], seen.target, seen.beliefs, seen.at_target
        )
        return keep, self._gain(narrowed) * np.maximum(cea[keep], 1e-9)


def constrained_expected_accuracy(seen: Outlook) -> Array:
    """`(c,)`: `A(x_inc, 1)·P(x_inc feasible)` once each candidate was observed at its predicted value.

    An observation at its predicted value moves no mean; it narrows the deviations, and with them who is sure to be
    feasible. Objectives that may be negative are shifted so that the worst representative counts zero.
    """
    goal, models = seen.state.problem.goal, seen.models
    C, Z = models.inputs(seen.table)[seen.offered], models.inputs(seen.target)
    p = np.ones((len(C), len(Z)))
    for constraint in goal.constraints:
        gp = models.of[seen.modelled(constraint.quantity)]
        belief = seen.at_target.of[constraint.quantity]
        variance = gp.posterior(C)[1] ** 2 + gp.noise * gp.scale**2
        narrower = np.maximum(belief.sd**2 - gp.between(C, Z) ** 2 / variance[:, None], 0.0)
        p *= type(belief)(belief.mean[None, :], np.sqrt(narrower), belief.log).probability(constraint)
    quality = goal.sign * seen.at_target.of[goal.quantity].mean
    quality = quality - min(0.0, float(quality.min()))
    sure = np.where(p >= SURE, quality, -np.inf)
    best = np.where(np.isfinite(sure).any(axis=1), sure.argmax(axis=1), p.argmax(axis=1))
    return np.asarray(quality[best] * p[np.arange(len(C)), best])

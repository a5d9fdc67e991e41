"""Nephele and Lynceus: constrained expected improvement per cost on ensembles of trees, with lookahead.

Nephele (thesis, ch. 3) minimises cost over configurations and data sizes under accuracy and time constraints
within an exploration budget. Lynceus is its ancestor on full data. Here both work for any goal: the objective
and every constrained quantity get an ensemble; time and cost share one since the price is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.declare.goal import At
from easel.declare.space import Point, point_key
from easel.errors import InvalidInput
from easel.optimise.acquire import usable_cost
from easel.optimise.forest import Forest, grow
from easel.records.study import Finished, Recommendation
from easel.tune.belief import Array, Beliefs, CandidateBelief, assemble
from easel.tune.encode import EncodedPoints, Ints
from easel.tune.state import State
from easel.tune.strategies.lookahead import Lookahead
from easel.tune.strategies.plain import EXHAUSTED, observed_best, random_choice
from easel.tune.strategy import PointChoice

# A spread of zero means that all trees saw the same neighbours, not certainty.
SPREAD_FLOOR = 0.05


@dataclass(frozen=True)
class FittedEnsembles:
    """The ensembles of all modelled quantities and what they say about the candidates."""

    table: EncodedPoints
    quantities: tuple[str, ...]
    forest: Forest
    leaves: Ints
    floor: Array

    def trees(self) -> Array:
        """`(q, b, m)`"""
        return self.forest.value[self.leaves]

    def beliefs(self, state: State, trees: Array) -> Beliefs:
        """Returns beliefs over `(…, m)` of trees `(…, q, b, m)`."""
        mean, sd = trees.mean(axis=-2), trees.std(axis=-2)
        sd = np.maximum(sd, self.floor[:, None])
        of = {name: (mean[..., i, :], sd[..., i, :]) for i, name in enumerate(self.quantities)}
        rated = state.problem.space.rates is not None
        return assemble(state.problem.goal, self.table.price, of, rated=rated)


def fit(state: State, table: EncodedPoints, *, trees: int) -> FittedEnsembles:
    quantities = state.problem.measured
    y = np.stack([state.outcomes(name) for name in quantities])
    forest = grow(state.seen.features, y, trees=trees, rng=state.rng("forest"))
    return FittedEnsembles(
        table, quantities, forest, forest.leaves(table.features), SPREAD_FLOOR * y.std(axis=1)
    )


class Nephele:
    """`horizon`: steps of lookahead (0 is best on the thesis's data); `nodes`: quadrature points on cost and accuracy.

    The initial Latin hypercube ends when `initial_budget` is spent or, without one, after `initial` trials.
    """

    full_only = False

    def __init__(
        self,
        horizon: int = 0,
        *,
        trees: int = 5,
        initial: int | None = None,
        initial_budget: float | None = None,
        gamma: float = 0.9,
        nodes: tuple[int, int] = (3, 1),
        paths: int = 128,
    ) -> None:
        if horizon < 0 or trees < 1 or min(nodes) < 1 or paths < 1:
            raise InvalidInput("horizon must be at least 0; trees, nodes and paths at least 1")
        self.horizon = horizon
        self.trees = trees
        self.initial = initial
        self.initial_budget = initial_budget
        self.gamma = gamma
        self.nodes = nodes
        self.paths = paths

    def suggest(self, state: State) -> PointChoice | Finished:
        warm = state.warm_start(full_only=self.full_only)
        if warm is not None:
            return PointChoice(warm, {"reason": "best of an earlier study"})
        if self._starting(state):
            point = self._start(state)
            return (
                random_choice(state, full_only=self.full_only)
                if point is None
                else PointChoice(point, {"reason": "initial design"})
            )
        table = state.candidates("nephele")
        free = self._offered(state, table)
        if not free.any():
            return EXHAUSTED
        fitted = fit(state.with_pending_guessed(), table, trees=self.trees)
        trees = fitted.trees()
        beliefs = fitted.beliefs(state, trees)
        gate = np.flatnonzero(free & self._gate(state, beliefs, state.left))
        if not len(gate):
            i = int(state.rng("random").choice(np.flatnonzero(free)))  # what was dropped stays dropped
            return PointChoice(table.points[i], {"reason": "nothing is predicted to be feasible"})
        best = state.best_value
        reward = beliefs.constrained_improvement(best)
        cost = usable_cost(beliefs.cost_of(state.problem.goal.budget.kind.value))
        ratio = reward[gate] / cost[gate]
        if self.horizon and len(gate) > 1:
            if len(gate) > self.paths:
                keep = np.argpartition(-ratio, self.paths)[: self.paths]
                gate, ratio = gate[np.sort(keep)], ratio[np.sort(keep)]
            ahead = Lookahead(state, fitted, self._gate, self.gamma, self.nodes)
            total, spent = ahead.explore(gate, free, self.horizon)
            ratio = total / spent
        order = np.argsort(-ratio, kind="stable")
        i = int(gate[order[0]])
        why: dict[str, float | str] = {"reason": "reward per cost", "score": float(ratio[order[0]])}
        if len(order) > 1:
            why["runner_up"] = float(ratio[order[1]])
        why |= {f"predicted_{name}": belief.at(i).median for name, belief in beliefs.of.items()}
        why["probability_feasible"] = float(beliefs.probability()[i])
        return PointChoice(table.points[i], why)

    def recommend(self, state: State) -> Recommendation | None:
        """The best observed point that meets the constraints; before there is one, the most promising guess."""
        found = observed_best(state)
        if found is not None or len(state.observations) < 2:
            return found
        table = state.candidates("nephele")
        if state.problem.goal.at is At.FULL:
            table = table.rows(np.flatnonzero(state.full(table)))
        beliefs = fit(state, table, trees=self.trees).beliefs(
            state, fit(state, table, trees=self.trees).trees()
        )
        i = int(np.argmax(beliefs.probability()))
        return Recommendation(table.points[i], beliefs.estimates(i), float(beliefs.probability()[i]))

    def _starting(self, state: State) -> bool:
        if self.initial_budget is not None:
            return state.spent < self.initial_budget or len(state.observations) < 2
        wanted = self.initial if self.initial is not None else max(4, state.problem.codec.width + 1)
        return len(state.observations) < max(2, wanted)

    def _start(self, state: State) -> Point | None:
        return state.next_in_design(full_only=self.full_only)

    def _offered(self, state: State, table: EncodedPoints) -> np.typing.NDArray[np.bool_]:
        free = state.free(table)
        return free & state.full(table) if self.full_only else free

    def _gate(self, state: State, beliefs: Beliefs, left: float | Array) -> np.typing.NDArray[np.bool_]:
        """Γ: candidates whose predicted means meet the constraints and fit the budget that is left."""
        return beliefs.feasible() & (beliefs.cost_of(state.problem.goal.budget.kind.value) <= left)


class NepheleDrop(Nephele):
    """Nephele that starts every configuration small and drops those that do badly there, as Hyperband does.

    The initial design tests configurations at the lowest fidelity. Later a configuration may be tested at a
    higher fidelity only while it is not among the worst `1 − 1/eta` of those observed at a lower one.
    """

    def __init__(self, horizon: int = 0, *, eta: float = 3.0, **others: object) -> None:
        super().__init__(horizon, **others)  # type: ignore[arg-type]  # passed on as they came
        if eta <= 1:
            raise InvalidInput(f"eta must be above 1, not {eta}")
        self.eta = eta

    def _start(self, state: State) -> Point | None:
        point = state.next_in_design(full_only=True)
        while point is not None:
            lowest = {**point, **(state.problem.levels[0] if state.problem.levels else {})}
            if state.is_free(lowest):
                return lowest
            return state.next_in_design()
        return None

    def _offered(self, state: State, table: EncodedPoints) -> np.typing.NDArray[np.bool_]:
        free = super()._offered(state, table)
        dropped = self._dropped(state)
        if not dropped:
            return free
        names = [d.name for d in state.problem.space.fidelities]
        for i in np.flatnonzero(free):
            key = point_key({k: v for k, v in table.points[int(i)].items() if k not in names})
            if key in dropped:
                free[i] = False
        return free

    def _dropped(self, state: State) -> set[object]:
        """Configurations in the worst part of some fidelity, judged by the quality constraint or objective."""
        judged = next(
            (c.quantity for c in state.problem.goal.constraints if c.at_least), state.problem.goal.quantity
        )
        names = [d.name for d in state.problem.space.fidelities]
        rungs: dict[object, list[tuple[float, object]]] = {}
        y = state.outcomes(judged) * (1.0 if state.problem.larger_is_better(judged) else -1.0)
        for value, observation in zip(y, state.observations, strict=True):
            rung = tuple(observation.point[n] for n in names)
            key = point_key({k: v for k, v in observation.point.items() if k not in names})
            rungs.setdefault(rung, []).append((float(value), key))
        dropped: set[object] = set()
        for entries in rungs.values():
            keep = int(np.ceil(len(entries) / self.eta))
            if len(entries) >= self.eta:
                dropped |= {key for _, key in sorted(entries, key=lambda e: -e[0])[keep:]}
        return dropped


class Lynceus(Nephele):
    """Full data only; Γ asks that the cost fits the remaining budget with probability 0.99."""

    full_only = True

    def _gate(self, state: State, beliefs: Beliefs, left: float | Array) -> np.typing.NDArray[np.bool_]:
        kind = state.problem.goal.budget.kind.value
        if kind not in beliefs.of:
            return np.ones_like(beliefs.cost_of(kind), dtype=bool)
        belief: CandidateBelief = beliefs.of[kind]
        bound = np.log(np.maximum(left, 1e-300)) if belief.log else np.asarray(left)
        return np.asarray(scipy.special.ndtr((bound - belief.mean) / np.maximum(belief.sd, 1e-9)) >= 0.99)

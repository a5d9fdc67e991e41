"""Hyperband and BOHB: many configurations at a low fidelity, the best few at higher ones.

Brackets are not remembered but read off the history: a configuration belongs to the bracket that was open when it
was first tried. Several fidelities climb together, one ladder from the lowest of all to the full one of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.declare.dimensions import Value
from easel.declare.space import PointKey, point_key
from easel.errors import InvalidInput
from easel.records.study import Finished, Recommendation
from easel.tune.belief import Array
from easel.tune.encode import EncodedPoints, scattered
from easel.tune.state import State
from easel.tune.strategies.plain import observed_best, random_choice
from easel.tune.strategy import PointChoice

Level = dict[str, Value]
# Drawing a configuration that was never tried: after this many attempts the space counts as used up.
_DRAWS = 500


def ladder(state: State) -> list[Level]:
    """One rung per level of the finest fidelity; coarser ones take the nearest of theirs. The last is full."""
    dimensions = state.problem.space.fidelities
    if not dimensions:
        return [{}]
    levels = {d.name: d.levels(5) for d in dimensions}
    rungs = max(len(values) for values in levels.values())
    return [
        {name: values[round(r * (len(values) - 1) / max(rungs - 1, 1))] for name, values in levels.items()}
        for r in range(rungs)
    ]


@dataclass(frozen=True)
class Ledger:
    """The history by configuration: when first tried, and its result on every rung (None while running)."""

    rungs: list[Level]
    first: dict[PointKey, int]
    configs: dict[PointKey, Level]
    results: dict[tuple[PointKey, int], float | None]

    @classmethod
    def read(cls, state: State) -> Ledger:
        rungs = ladder(state)
        names = {d.name for d in state.problem.space.fidelities}
        ledger = cls(rungs, {}, {}, {})
        goal = state.problem.goal
        y = goal.sign * state.outcomes(goal.quantity) if state.observations else np.zeros(0)
        tried: list[tuple[object, float | None]] = [
            (o.point, float(v)) for o, v in zip(state.observations, y, strict=True)
        ]
        order = np.argsort(
            [i if o.number is None else o.number for i, o in enumerate(state.observations)], kind="stable"
        )
        tried = [tried[i] for i in order] + [(p, None) for p in state.pending]
        for point, value in tried:
            assert isinstance(point, dict)
            level = {k: v for k, v in point.items() if k in names}
            if level not in rungs:
                continue
            config = {k: v for k, v in point.items() if k not in names}
            key, rung = point_key(config), rungs.index(level)
            ledger.first.setdefault(key, rung)
            ledger.configs.setdefault(key, config)
            ledger.results[key, rung] = value
        return ledger

    def starters(self, rung: int) -> Iterator[PointKey]:
        """Configurations first tried on this rung, oldest first."""
        return (key for key, first in self.first.items() if first == rung)


class Hyperband:
    """`eta`: one in `eta` survives each rung."""

    def __init__(self, *, eta: float = 3.0) -> None:
        if eta <= 1:
            raise InvalidInput(f"eta must be above 1, not {eta}")
        self.eta = eta

    def suggest(self, state: State) -> PointChoice | Finished:
        ledger = Ledger.read(state)
        count = len(ledger.rungs)
        waiting = {rung: ledger.starters(rung) for rung in range(count)}
        while True:
            for lowest in range(count):
                height = count - lowest
                size = int(np.ceil(count / height * self.eta ** (height - 1)))
                members = [key for _, key in zip(range(size), waiting[lowest], strict=False)]
                if len(members) < size:
                    return self.fresh(state, ledger, lowest)
                promoted = self.promote(state, ledger, members, lowest)
                if promoted is not None:
                    return promoted

    def promote(
        self, state: State, ledger: Ledger, members: list[PointKey], lowest: int
    ) -> PointChoice | None:
        """The next step of a bracket whose starters were all tried; None when it is done or must wait."""
        for rung in range(lowest + 1, len(ledger.rungs)):
            scores = [ledger.results.get((key, rung - 1)) for key in members]
            if any(score is None for score in scores):
                return None
            ranked = sorted(
                zip(scores, members, strict=True), key=lambda e: -(e[0] or 0.0) if e[0] is not None else 0.0
            )
            members = [key for _, key in ranked[: max(1, int(len(members) / self.eta))]]
            for key in members:
                point = {**ledger.configs[key], **ledger.rungs[rung]}
                if (key, rung) not in ledger.results and not state.problem.space.is_forbidden(point):
                    return PointChoice(
                        point, {"reason": f"promoted to rung {rung + 1} of {len(ledger.rungs)}"}
                    )
        return None

    def fresh(self, state: State, ledger: Ledger, rung: int) -> PointChoice | Finished:
        """A configuration that was never tried, on the given rung."""
        rng = state.rng("bracket")
        for attempt in range(_DRAWS):
            point = (
                self._propose(state, ledger, rng) if attempt == 0 else state.problem.space.sample(rng.random)
            )
            point = {**point, **ledger.rungs[rung]}
            names = ledger.rungs[rung]
            key = point_key({k: v for k, v in point.items() if k not in names})
            if key not in ledger.first and not state.problem.space.is_forbidden(point):
                return PointChoice(point, {"reason": f"new on rung {rung + 1} of {len(ledger.rungs)}"})
        return random_choice(state)

    def _propose(self, state: State, ledger: Ledger, rng: np.random.Generator) -> Level:
        return state.problem.space.sample(rng.random)

    def recommend(self, state: State) -> Recommendation | None:
        """The best observation at full fidelity, else the best on the highest rung reached."""
        found = observed_best(state)
        if found is not None or not state.observations:
            return found
        ledger = Ledger.read(state)
        done = [(rung, value, key) for (key, rung), value in ledger.results.items() if value is not None]
        if not done:
            return None
        top = max(rung for rung, _, _ in done)
        _, key = max(((value, key) for rung, value, key in done if rung == top), key=lambda e: e[0])
        return Recommendation({**ledger.configs[key], **state.problem.full})


class Bohb(Hyperband):
    """New configurations where good ones are dense and poor ones are not, on the highest rung with enough of both."""

    def __init__(self, *, eta: float = 3.0, explore: float = 1 / 3, best: float = 0.15) -> None:
        super().__init__(eta=eta)
        self.explore = explore
        self.best = best

    def _propose(self, state: State, ledger: Ledger, rng: np.random.Generator) -> Level:
        split = self._split(state, ledger)
        if split is None or rng.random() < self.explore:
            return super()._propose(state, ledger, rng)
        good, poor = split
        pool = self._encoded_candidates(state, rng)
        score = density(pool.x, good) - density(pool.x, poor)
        # The densest of a few, as BOHB draws 64 from the good density; always taking the maximum would repeat itself.
        few = rng.choice(len(pool), size=min(len(pool), 64), replace=False)
        return dict(pool.points[int(few[np.argmax(score[few])])])

    def _encoded_candidates(self, state: State, rng: np.random.Generator) -> EncodedPoints:
        if state.problem.grid is not None:
            return state.problem.grid
        return state.problem.codec.table(scattered(state.problem.space, 512, rng))

    def _split(self, state: State, ledger: Ledger) -> tuple[Array, Array] | None:
        least = state.problem.codec.width + 2
        for rung in reversed(range(len(ledger.rungs))):
            done = [(v, key) for (key, r), v in ledger.results.items() if r == rung and v is not None]
            if len(done) < least + 2:
                continue
            done.sort(key=lambda e: -e[0])
            count = min(max(least, int(self.best * len(done))), len(done) - 2)
            x = state.problem.codec.table({**ledger.configs[k], **ledger.rungs[rung]} for _, k in done).x
            return x[:count], x[count:]
        return None


def density(x: Array, centres: Array) -> Array:
    """`(m,)` log of a Gaussian kernel density, product bandwidth by Scott's rule and at least 0.1."""
    n, d = centres.shape
    width = np.maximum(centres.std(axis=0) * n ** (-1.0 / (d + 4)), 0.1)
    away = (x[:, None, :] - centres[None]) / width
    return np.asarray(
        scipy.special.logsumexp(-0.5 * (away**2).sum(axis=2), axis=1) - np.log(n) - np.log(width).sum()
    )

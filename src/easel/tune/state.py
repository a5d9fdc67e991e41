"""All that a strategy may look at, and the arrays that it needs, derived from the history alone."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from easel.declare.dimensions import Value
from easel.declare.goal import COST, TIME, At, Goal, own_use
from easel.declare.space import Point, PointKey, Space, point_key
from easel.records.study import Observation, PointOutcome
from easel.tune.belief import forward
from easel.tune.encode import Array, Codec, EncodedPoints, latin, levels, near, scattered

# Above this many grid points a space is sampled like a continuous one.
GRID_LIMIT = 20_000
_SCATTERED = 1_024
_NEAR = 200
_HAIR = 0.01
"""In units of a dimension's whole range."""
# Points in one Latin hypercube of the initial design, and how many of them are tried before giving up.
_BLOCK = 8
_BLOCKS = 200


@dataclass(frozen=True)
class StudyProblem:
    """A study's declaration. `earlier`: observations of earlier studies over the same space (a warm start)."""

    space: Space
    goal: Goal
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[Observation, ...] = ()

    @cached_property
    def codec(self) -> Codec:
        return Codec(self.space)

    @cached_property
    def levels(self) -> list[dict[str, Value]]:
        return levels(self.space)

    @cached_property
    def full(self) -> dict[str, Value]:
        """The target value of every fidelity."""
        return {d.name: d.target for d in self.space.fidelities}

    @cached_property
    def grid(self) -> EncodedPoints | None:
        """Every point, where there are few enough to list."""
        if not self.space.is_finite or self.space.combinations > GRID_LIMIT:
            return None
        return _grid(self.space)

    def larger_is_better(self, quantity: str) -> bool:
        if quantity == self.goal.quantity:
            return self.goal.sign > 0
        return any(c.quantity == quantity and c.at_least for c in self.goal.constraints)

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Quantities that need a model. With rates, time and cost are one: cost = price · time."""
        wanted = list(self.goal.quantities)
        if self.goal.budget.kind.value in (TIME, COST):
            wanted.append(self.goal.budget.kind.value)
        if self.space.rates is not None:
            wanted = [TIME if name == COST else name for name in wanted]
        return tuple(dict.fromkeys(wanted))


# Listing and encoding a grid takes milliseconds and many problems share one space; a table never changes.
_GRIDS: dict[str, EncodedPoints] = {}


def _grid(space: Space) -> EncodedPoints:
    if space.fingerprint not in _GRIDS:
        _GRIDS[space.fingerprint] = Codec(space).table(space.grid())
    return _GRIDS[space.fingerprint]


@dataclass(frozen=True)
class State:
    """`observations` in the order told; `pending`: points asked for and not yet told."""

    problem: StudyProblem
    observations: tuple[Observation, ...] = ()
    pending: tuple[Point, ...] = ()
    # What was derived from this very state, so that a suggestion and a recommendation fit their models once.
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def rng(self, purpose: str) -> np.random.Generator:
        """Randomness that depends on the seed, the purpose and how far the study is, and on nothing else."""
        asked = len(self.observations) + len(self.pending)
        return np.random.default_rng([self.problem.seed, zlib.crc32(purpose.encode()), asked])

    def fixed_rng(self, purpose: str) -> np.random.Generator:
        """Randomness that stays the same through the whole study."""
        return np.random.default_rng([self.problem.seed, zlib.crc32(purpose.encode())])

    def at_full(self) -> State:
        """The same study with its observations at full fidelity only, for models that know no fidelities."""
        if "at_full" not in self.memo:
            space = self.problem.space
            kept = tuple(o for o in self.observations if space.is_target(o.point))
            running = tuple(p for p in self.pending if space.is_target(p))
            same = len(kept) == len(self.observations) and len(running) == len(self.pending)
            self.memo["at_full"] = self if same else State(self.problem, kept, running)
        found: State = self.memo["at_full"]
        return found

    @cached_property
    def taken(self) -> set[PointKey]:
        """Points observed or running; nobody reruns them."""
        return {point_key(o.point) for o in self.observations} | {point_key(p) for p in self.pending}

    @cached_property
    def spent(self) -> float:
        return sum(self.problem.goal.budget.spend(own_use(self.values(o))) for o in self.observations)

    @property
    def left(self) -> float:
        return self.problem.goal.budget.amount - self.spent

    def values(self, observation: Observation) -> dict[str, float]:
        """The measurements, with cost from time or time from cost where the rates give one from the other."""
        values = dict(observation.values)
        price = self.problem.space.price_per_hour(observation.point)
        if price:
            if COST not in values and TIME in values:
                values[COST] = values[TIME] * price / 3600.0
            elif TIME not in values and COST in values:
                values[TIME] = values[COST] / price * 3600.0
        return values

    @cached_property
    def seen(self) -> EncodedPoints:
        """The observed points, one row each."""
        return self.problem.codec.table([o.point for o in self.observations])

    def measurements(self, quantity: str) -> Array:
        """`(n,)`: the quantity in every observation, NaN where it was not (properly) measured or the trial failed.

        A stopped trial says what it cost so far, which is not what it costs, so it counts only if it is measured.
        """
        out = np.full(len(self.observations), np.nan)
        for i, observation in enumerate(self.observations):
            if observation.outcome is PointOutcome.COMPLETED or (
                observation.outcome is PointOutcome.STOPPED and quantity not in (TIME, COST)
            ):
                value = self.values(observation).get(quantity, math.nan)
                out[i] = value if math.isfinite(value) else math.nan
        return out

    def outcomes(self, quantity: str) -> Array:
        """`(n,)` on the model's scale without gaps: what is missing is read as the worst value seen.

        A trial that failed or measured NaN is a poor one; leaving it out would invite its neighbours.
        """
        y = forward(quantity, self.measurements(quantity))
        known = y[np.isfinite(y)]
        if not len(known):
            return np.zeros(len(y))
        return np.where(
            np.isfinite(y), y, known.min() if self.problem.larger_is_better(quantity) else known.max()
        )

    @cached_property
    def incumbent(self) -> int | None:
        """The best observation that meets all constraints at a fidelity where the goal is judged.

        Of several objectives: the one in the middle of the front, where all weigh alike.
        """
        goal, best = self.problem.goal, None
        if goal.others:
            from easel.tune.objectives import equal_weights, weighed  # it stands on this module

            return weighed(self, equal_weights(goal)).incumbent
        for i, observation in enumerate(self.observations):
            if observation.outcome is not PointOutcome.COMPLETED:
                continue
            if goal.at is At.FULL and not self.problem.space.is_target(observation.point):
                continue
            values = self.values(observation)
            if goal.meets(values) and (
                best is None or goal.better(values, self.values(self.observations[best]))
            ):
                best = i
        return best

    @property
    def best_value(self) -> float | None:
        """The incumbent's objective, in its own unit."""
        if self.incumbent is None:
            return None
        return self.values(self.observations[self.incumbent])[self.problem.goal.quantity]

    def with_pending_guessed(self) -> State:
        """Running trials counted as observed with the mean of their nearest three observations.

        That keeps a second worker away from where the first one is, without claiming to know the outcome.
        """
        if not self.pending or not self.observations:
            return self
        running = self.problem.codec.table(self.pending)
        guessed = []
        for i, point in enumerate(self.pending):
            away = ((self.seen.features - running.features[i]) ** 2).sum(axis=1)
            close = np.argsort(away, kind="stable")[:3]
            values = {}
            for name in self.problem.measured:
                seen = self.measurements(name)[close]
                if np.isfinite(seen).any():
                    values[name] = float(np.nanmean(seen))
            guessed.append(Observation(point, values))
        return State(self.problem, self.observations + tuple(guessed))

    def candidates(self, purpose: str) -> EncodedPoints:
        """Points to choose from: the whole grid, or for a large space a fresh scatter and the leaders' surroundings.

        In a sampled space each drawn point is offered at every fidelity.
        """
        if self.problem.grid is not None:
            return self.problem.grid
        if purpose not in self.memo:
            self.memo[purpose] = self._sampled(purpose)
        found: EncodedPoints = self.memo[purpose]
        return found

    def _sampled(self, purpose: str) -> EncodedPoints:
        rng = self.rng(f"candidates {purpose}")
        space = self.problem.space
        drawn = scattered(space, _SCATTERED, rng)
        for i in self.leaders(3):
            drawn += near(space, self.observations[i].point, _NEAR, rng)
        found: dict[PointKey, dict[str, Value]] = {}
        for point in drawn:
            for level in self.problem.levels:
                offered = {**point, **level}
                if not space.is_forbidden(offered):
                    found.setdefault(point_key(offered), offered)
        return self._away_from_pending(self.problem.codec.table(found.values()))

    def _away_from_pending(self, table: EncodedPoints) -> EncodedPoints:
        """Moves a suggestion away from pending ones: a second worker must not be sent within a hair of the first."""
        if not self.pending or not table.x.shape[1]:
            return table
        running = self.problem.codec.table(self.pending)
        far = np.ones(len(table), dtype=bool)
        for x, s in zip(running.x, running.s, strict=True):
            same_fidelity = (table.s == s).all(axis=1)
            far &= ~(same_fidelity & (np.abs(table.x - x).max(axis=1) < _HAIR))
        return table.rows(np.flatnonzero(far)) if far.any() else table

    def leaders(self, count: int) -> list[int]:
        """Observations to search around: feasible ones first, then by the objective."""
        goal = self.problem.goal
        ranked = []
        for i, observation in enumerate(self.observations):
            values = self.values(observation)
            value = values.get(goal.quantity, math.nan)
            if math.isfinite(value):
                ranked.append((not goal.meets(values), -goal.sign * value, i))
        return [i for _, _, i in sorted(ranked)[:count]]

    def free(self, table: EncodedPoints) -> np.typing.NDArray[np.bool_]:
        """`(m,)`: candidates that were neither observed nor are running."""
        mask = np.ones(len(table), dtype=bool)
        for key in self.taken:
            if (i := table.index.get(key)) is not None:
                mask[i] = False
        return mask

    def is_free(self, point: Point) -> bool:
        return point_key(point) not in self.taken

    def full(self, table: EncodedPoints) -> np.typing.NDArray[np.bool_]:
        """`(m,)`: candidates at the top of every fidelity."""
        return np.asarray((table.s == 1.0).all(axis=1))

    def observed_at(self, point: Point) -> dict[str, float] | None:
        """What was measured at exactly this point, where it completed."""
        key = point_key(point)
        for observation in reversed(self.observations):
            if observation.outcome is PointOutcome.COMPLETED and point_key(observation.point) == key:
                return self.values(observation)
        return None

    def before(self) -> State | None:
        """The earlier studies as a state of their own, without points that the space does not contain."""
        if not self.problem.earlier:
            return None
        if "before" not in self.memo:
            problem = replace(self.problem, earlier=())
            kept = [o for o in self.problem.earlier if problem.space.contains(o.point)]
            self.memo["before"] = State(problem, tuple(kept)) if kept else None
        found: State | None = self.memo["before"]
        return found

    def warm_start(self, count: int = 3, *, full_only: bool = False) -> Point | None:
        """The next untried of the `count` best points of earlier studies."""
        before = self.before()
        if before is None:
            return None
        space = self.problem.space
        best = [space.check(before.observations[i].point) for i in before.leaders(count)]
        if full_only:
            best = [space.at_target(p) for p in best]
        return next((p for p in best if self.is_free(p) and not space.is_forbidden(p)), None)

    def design(self, count: int) -> list[dict[str, Value]]:
        """`count` points in one Latin hypercube that depends on the seed alone."""
        return latin(self.problem.space, count, self.fixed_rng("design"))

    def next_in_design(self, *, full_only: bool = False) -> Point | None:
        """The next untried point of the study's own sequence of Latin hypercubes, None once it is used up.

        Block `k` of the sequence depends on the seed alone, so that a resumed study continues it.
        """
        for block in range(_BLOCKS):
            rng = np.random.default_rng([self.problem.seed, zlib.crc32(b"design"), block])
            for point in latin(self.problem.space, _BLOCK, rng):
                found = {**point, **self.problem.full} if full_only else point
                if self.is_free(found) and not self.problem.space.is_forbidden(found):
                    return found
        return None

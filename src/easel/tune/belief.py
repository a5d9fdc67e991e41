"""What a model believes about each quantity at each candidate, on the scale on which it is roughly normal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.declare.goal import COST, TIME, Constraint, Goal
from easel.optimise.acquire import expected_improvement
from easel.records.study import Estimate

Array = npt.NDArray[np.float64]


def is_log(quantity: str) -> bool:
    """Time and cost range over orders of magnitude and are never negative: they are modelled as logarithms."""
    return quantity in (TIME, COST)


def forward(quantity: str, values: Array) -> Array:
    """Returns values on the model's scale; times and costs below zero are a millionth of the typical one."""
    if not is_log(quantity):
        return values
    known = values[np.isfinite(values) & (values > 0)]
    typical = float(np.median(known)) if len(known) else 1.0
    return np.log(np.where(np.isnan(values), np.nan, np.maximum(values, 1e-6 * typical)))


@dataclass(frozen=True)
class CandidateBelief:
    """A normal distribution at each of `m` candidates, of the quantity or (`log`) of its logarithm.

    The arrays are `(m,)`; in a lookahead they have leading axes for the paths, `(p, m)`.
    """

    mean: Array
    sd: Array
    log: bool

    def scaled(self, bound: float) -> float:
        """A bound in the quantity's unit on the scale of `mean`."""
        if not self.log:
            return bound
        return math.log(max(bound, 1e-300))

    def median(self) -> Array:
        return np.exp(self.mean) if self.log else self.mean

    def probability(self, constraint: Constraint) -> Array:
        """`(m,)`: how likely each candidate meets the constraint."""
        gap = self.scaled(constraint.bound) - self.mean
        gap = -gap if constraint.at_least else gap
        width = np.maximum(self.sd, 1e-9)
        return np.asarray(scipy.special.ndtr(gap / width))

    def holds(self, constraint: Constraint) -> npt.NDArray[np.bool_]:
        """`(m,)`: whether the mean meets the constraint."""
        bound = self.scaled(constraint.bound)
        return self.mean >= bound if constraint.at_least else self.mean <= bound

    def at(self, i: int) -> Estimate:
        centre, width = float(self.mean[i]), float(self.sd[i]) * float(scipy.special.ndtri(0.95))
        ends = (centre, centre - width, centre + width)
        median, low, high = (math.exp(min(e, 700.0)) if self.log else e for e in ends)
        return Estimate(median, low, high)


@dataclass(frozen=True)
class Beliefs:
    """One belief per quantity of the goal, over the same candidates."""

    goal: Goal
    of: Mapping[str, CandidateBelief]

    def probability(self) -> Array:
        """`(m,)`: how likely all constraints hold, taken as independent given the data."""
        p = np.ones_like(self.of[self.goal.quantity].mean)
        for constraint in self.goal.constraints:
            p = p * self.of[constraint.quantity].probability(constraint)
        return p

    def feasible(self) -> npt.NDArray[np.bool_]:
        ok = np.ones_like(self.of[self.goal.quantity].mean, dtype=bool)
        for constraint in self.goal.constraints:
            ok &= self.of[constraint.quantity].holds(constraint)
        return ok

    def improvement(self, best: float | None) -> Array:
        """`(m,)`: expected improvement over `best` (in the objective's unit); without a best, over the worst in sight.

        On the model's scale: for cost that is the improvement of its logarithm, which asks for ratios.
        """
        belief = self.of[self.goal.quantity]
        m = self.goal.sign * belief.mean
        if best is None:
            reference = float((m - 3 * belief.sd).min())
        else:
            reference = self.goal.sign * belief.scaled(best)
        return np.asarray(expected_improvement(m, belief.sd, reference))

    def constrained_improvement(self, best: float | None) -> Array:
        """`EI_c = EI · Π P(constraint holds)`."""
        return self.improvement(best) * self.probability()

    def cost_of(self, kind: str) -> Array:
        """What a trial uses up in the unit `kind`: cost, time, or 1 where neither is known (a count)."""
        if kind not in self.of:
            return np.ones_like(self.of[self.goal.quantity].mean)
        return self.of[kind].median()

    def estimates(self, i: int) -> dict[str, Estimate]:
        return {name: belief.at(i) for name, belief in self.of.items()}


def assemble(goal: Goal, price: Array, of: Mapping[str, tuple[Array, Array]], *, rated: bool) -> Beliefs:
    """Beliefs from means and deviations on the model's scale; with rates also cost = price · time.

    `price`: `(m,)` money per second.
    """
    found = {name: CandidateBelief(mean, sd, is_log(name)) for name, (mean, sd) in of.items()}
    if rated and TIME in found:
        time = found[TIME]
        found[COST] = CandidateBelief(time.mean + np.log(np.maximum(price, 1e-300)), time.sd, log=True)
    return Beliefs(goal, found)

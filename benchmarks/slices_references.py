"""Rivals of the slices policy, a page each: asynchronous successive halving, and the model of remaining gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from easel.optimise.arrays import Array
from easel.optimise.covariance import ledoit_wolf
from easel.records.decision import Decision, LeaveIdle, StartTrial, TrialSlice
from easel.schedule.curve_belief import CurveBelief, learn_curves, warped
from easel.schedule.curves import CurveTable
from easel.schedule.policies.compose import start
from easel.schedule.state import PoolState, Tenant


@dataclass(frozen=True)
class TurnsOfHalving:
    """ASHA for each tenant, tenants in turn: the best third of those at a rung goes on, else another begins.

    `order` is the order in which candidates begin, one for everybody or one for each tenant.
    """

    name: str
    rungs: tuple[int, ...]
    order: tuple[tuple[int, ...], ...]
    third: int = 3

    def decide(self, state: PoolState) -> Decision:
        for place, tenant in sorted(enumerate(state.tenants.values()), key=lambda each: each[1].served_at):
            found = self._next(tenant, self.order[place % len(self.order)])
            if found is not None:
                return self._start(state, tenant, *found)
        return LeaveIdle(state.device.name, "everything has run")

    def _next(self, tenant: Tenant, order: tuple[int, ...]) -> tuple[int, int] | None:
        belief = tenant.belief
        assert isinstance(belief, CurveBelief)
        busy = {trial.index for trial in tenant.running}
        share = belief.rungs / belief.rungs[-1]
        for low, high in reversed(list(zip(self.rungs, self.rungs[1:], strict=False))):
            at = {p.candidate: p.quality for p in tenant.pulls if p.fraction == share[low]}
            best = sorted(at, key=lambda k: -at[k])[: len(at) // self.third]
            for k in best:
                if belief.progress[k] == low and k not in busy:
                    return k, high
        fresh = next((k for k in order if belief.progress[k] < 0 and k not in busy), None)
        return None if fresh is None else (fresh, self.rungs[0])

    def _start(self, state: PoolState, tenant: Tenant, k: int, rung: int) -> StartTrial:
        belief = tenant.belief
        assert isinstance(belief, CurveBelief)
        share = float(belief.rungs[rung] / belief.rungs[-1])
        cost = float(belief.costs_ahead()[k, rung])
        part = TrialSlice(rung, share, 1.0 / state.device.speed, state.device.price)
        return start(state, tenant, k, self.name, 0.0, None, cost=cost, part=part)


@dataclass(frozen=True, eq=False)
class RemainingGains(CurveBelief):
    """The model of one page: final values with a Ledoit–Wolf covariance, and what is still to be gained by rung.

    Of one candidate only the last rung counts: `value + gain[k, e]` is its end, with variance `spread[e]`. Costs are
    history's times the tenant's own factor.
    """

    final: Any = None
    cov: Any = None
    gain: Any = None
    spread: Any = None
    usual: Any = None
    values: Any = None
    fantasies: tuple[tuple[int, int], ...] = ()
    factor: tuple[float, ...] = ()

    def _posterior(self) -> tuple[Array, Array]:
        at = np.flatnonzero(self.progress >= 0)
        mean, cov, factor = self.final, self.cov, 1.0
        if len(at):
            e = self.progress[at]
            y = self.values[at] + self.gain[at, e] - mean[at]
            G = np.linalg.inv(cov[np.ix_(at, at)] + np.diag(self.spread[e]))
            factor = (10.0 + float(y @ G @ y)) / (10.0 + len(at))
            mean, cov = mean + cov[:, at] @ (G @ y), cov - cov[:, at] @ G @ cov[at]
        for k, rung in self.fantasies:
            cov = cov - np.outer(cov[:, k], cov[k]) / (cov[k, k] + self.spread[rung])
        return mean, factor * np.diag(cov).clip(min=0.0)

    def cells(self) -> tuple[Array, Array]:
        mean, var = self._posterior()
        return mean[:, None] - self.gain, np.sqrt(var[:, None] + self.spread[None, :])

    def costs(self) -> Array:
        return np.asarray(self.usual * np.exp(np.mean(self.factor) if self.factor else 0.0))

    def reached(self, k: int, rung: int, quality: float, seconds: float | None = None) -> RemainingGains:
        values, progress, spent = self.values.copy(), self.progress.copy(), self.spent.copy()
        values[k], progress[k] = float(warped(np.array(quality))), rung
        spent[k] += seconds or 0.0
        ratio = float(np.log(max(spent[k], 1e-9) / self.usual[k, rung]))
        return replace(self, values=values, progress=progress, spent=spent, factor=(*self.factor, ratio))

    def expected(self, k: int, rung: int) -> RemainingGains:
        return replace(self, fantasies=(*self.fantasies, (k, rung)))


def remaining_gains(history: CurveTable) -> RemainingGains:
    """The model of one page, from complete curves."""
    H, base = warped(history.quality), learn_curves(history.rows([])).belief()
    n = len(H)
    final = H[:, :, -1]
    left = final[:, :, None] - H
    gain = (left.sum(0) + 3.0 * left.mean((0, 1))) / (n + 3.0)
    mean = final.mean(0)
    usual = np.exp(np.log(history.cost).mean(0))
    steps = np.diff(np.log(usual), axis=1, prepend=-np.inf)
    return RemainingGains(
        **{name: getattr(base, name) for name in base.__dataclass_fields__ if name != "steps"},
        steps=steps,
        final=mean,
        cov=ledoit_wolf(final - mean) * (n + 1) / (n - 1) + 1e-4 * np.eye(len(mean)),
        gain=gain,
        spread=((left - gain) ** 2).mean((0, 1)) + 1e-8,
        usual=usual,
        values=np.zeros(len(mean)),
    )

"""Which candidate of a tenant: GP-UCB, expected improvement per cost, a fixed order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from easel.optimise.acquire import expected_improvement, per_cost, ucb_beta, upper_confidence_bound
from easel.optimise.arrays import Array
from easel.schedule.state import PoolState, Tenant


def mean_cost(state: PoolState) -> float:
    """The mean predicted cost over all tenants' candidates on this device, by which ease.ml normalises."""
    total, count = 0.0, 0
    for tenant in state.tenants.values():
        key = ("cost sum", state.device.kind, state.device.speed, state.device.interruptions)
        if key not in tenant.memo:
            costs = tenant.costs(state.device)
            finite = costs[np.isfinite(costs)]
            tenant.memo[key] = (float(finite.sum()), len(finite))
        part, number = tenant.memo[key]
        total, count = total + part, count + number
    return total / count if total > 0.0 else 1.0


@dataclass(frozen=True)
class UpperBound:
    """ease.ml §4.1: `m + √(β_t/c) s` with `β_t = log(K t²/δ)`; `c = 1` when cost-oblivious."""

    cost_aware: bool = True
    delta: float = 0.1

    def rule(self) -> str:
        return "upper confidence bound" + (" per cost" if self.cost_aware else "")

    def depends_on(self, state: PoolState) -> Hashable:
        return mean_cost(state) if self.cost_aware else None

    def scores(self, tenant: Tenant, state: PoolState) -> Array:
        beta = ucb_beta(len(tenant.candidates), len(tenant.pulls) + 1, self.delta)
        if self.cost_aware:
            beta = beta / (tenant.costs(state.device) / mean_cost(state))
        return np.asarray(upper_confidence_bound(tenant.belief.mean, tenant.belief.sd, beta))


@dataclass(frozen=True)
class EIRate:
    """`EI(x)/c(x)`: MM-GP-EI eq. 5, Spearmint's EI per second."""

    def rule(self) -> str:
        return "expected improvement per cost"

    def depends_on(self, state: PoolState) -> Hashable:
        return None

    def scores(self, tenant: Tenant, state: PoolState) -> Array:
        gain = expected_improvement(tenant.belief.mean, tenant.belief.sd, tenant.best)
        return np.asarray(per_cost(gain, tenant.costs(state.device)))


@dataclass(frozen=True)
class FixedOrder:
    """The same order for everybody, as people without a scheduler do; unlisted candidates come last."""

    order: tuple[str, ...]

    def rule(self) -> str:
        return "fixed order"

    def depends_on(self, state: PoolState) -> Hashable:
        return None

    def scores(self, tenant: Tenant, state: PoolState) -> Array:
        place = {name: float(i) for i, name in enumerate(self.order)}
        return np.array([-place.get(c, len(place)) for c in tenant.candidates])


@dataclass(frozen=True, eq=False)
class TrueGain:
    """Hindsight: true gain in quality per cost, from `quality` `(K,)` by tenant; simulation only."""

    quality: Mapping[str, Array]

    def rule(self) -> str:
        return "true gain per cost"

    def depends_on(self, state: PoolState) -> Hashable:
        return None

    def scores(self, tenant: Tenant, state: PoolState) -> Array:
        truth = np.nan_to_num(self.quality[tenant.name], nan=-np.inf)
        return np.asarray(per_cost((truth - tenant.best).clip(min=-1.0), tenant.costs(state.device)))

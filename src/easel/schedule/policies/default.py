"""The default policy: expected improvement per cost of everybody, made robust and fair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.optimise.acquire import expected_improvement
from easel.optimise.arrays import Array
from easel.records.decision import Decision, LeaveIdle
from easel.schedule.policies.compose import Offer, start
from easel.schedule.state import PoolState, Tenant

_UNKNOWN = object()


@dataclass(frozen=True)
class Easel:
    """What each tenant may gain per cost, weighted; nobody starves.

    A tenant with something to run that was not served for `N/share` starts (`N` tenants in the pool) is
    served first; so between two services of a tenant lie at most `N/share + N` starts of others.
    """

    share: float = 0.1
    patience: float = 1.0
    name: str = "easel"

    def decide(self, state: PoolState) -> Decision:
        offers = self._offers(state)
        if not offers:
            return LeaveIdle(state.device.name, "no tenant has a candidate that may run here")
        waited = np.array([state.step - o.tenant.served_at for o in offers])
        scores = np.array([o.score for o in offers])
        order = np.argsort(-scores * (1.0 + waited / len(offers)) ** self.patience, kind="stable")[:2]
        chosen, rule = offers[order[0]], "largest expected gain per cost, by time waited"
        oldest = int(waited.argmax())
        if waited[oldest] >= len(state.tenants) / self.share:
            chosen, rule = offers[oldest], "fairness floor: waited longest"
        other = next((offers[i] for i in order if offers[i] is not chosen), None)
        return start(state, chosen.tenant, chosen.index, rule, chosen.score, other)

    def _offers(self, state: PoolState) -> list[Offer]:
        key = (self, state.device.kind, state.device.speed)
        offers = []
        for tenant in state.tenants.values():
            found = tenant.memo.get(key, _UNKNOWN)
            if found is _UNKNOWN:
                found = self._offer(tenant, state)
                if tenant.deadline == np.inf and tenant.budget == np.inf:
                    tenant.memo[key] = found
            if found is not None:
                offers.append(found)
        return offers

    def _offer(self, tenant: Tenant, state: PoolState) -> Offer | None:
        mask = tenant.may_run(state.device, state.now)
        if not mask.any():
            return None
        scores = np.where(mask, self._scores(tenant, state), -np.inf)
        index = int(scores.argmax())
        return Offer(tenant, index, float(scores[index]))

    def _scores(self, tenant: Tenant, state: PoolState) -> Array:
        belief, best = tenant.belief, tenant.best
        for trial in tenant.running:
            # what is running will raise the bar by as much as it promises, and teach about its kin
            k = trial.index
            best = best + float(gain_below(belief.mean[k], belief.sd[k], best, tenant.ceiling))
            belief = belief.believed(k)
        gain = gain_below(belief.mean, belief.sd, best, tenant.ceiling)
        return np.asarray(tenant.weight * gain.clip(min=1e-15) / tenant.costs(state.device))


def gain_below(m: Array, s: Array, best: float, ceiling: float) -> Array:
    """`E[(min(f, ceiling) − best)⁺]`: no hope is placed above the highest quality there can be."""
    gain = expected_improvement(m, s, best)
    if ceiling < np.inf:
        gain = gain - expected_improvement(m, s, max(ceiling, best))
    return np.asarray(gain)

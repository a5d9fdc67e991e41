"""The default policy: expected gain per cost of everybody, made robust and fair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.records.decision import Decision, LeaveIdle, StartTrial, TrialSlice
from easel.schedule.curve_belief import CurveBelief
from easel.schedule.policies.board import BestCandidate, board_of
from easel.schedule.policies.compose import start
from easel.schedule.policies.gain import expected_gain, look_rates, pending
from easel.schedule.policies.slices import SliceOffer, best_slice, device_scale
from easel.schedule.state import Look, PoolState, Tenant

FULL = Look(fraction=1.0, cost=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Offer(BestCandidate):
    look: Look = FULL
    part: SliceOffer | None = None


@dataclass(frozen=True)
class Easel:
    """Serve whom one more trial helps most per cost: `weight · E[gain]/c(x, d)`, times `(1 + waited/N)²`.

    `waited` counts the starts since the tenant was last served and `N` the tenants with something to run. A
    model of many tenants is wrong about some of them; weighing by the wait keeps a tenant that promises too
    much from eating the pool, and one that promises too little from being forgotten. On top of that a floor:
    a tenant not served for `N/share` starts is served first, so between two services of a tenant that has
    something to run lie at most `N/share + N` starts, whatever the scores say.

    Running trials count as pending, no gain is hoped for above the ceiling, budgets and deadlines rule
    candidates out, and a tenant with a deadline counts up to double as it nears.
    """

    share: float = 0.1
    patience: float = 2.0
    name: str = "easel"

    def decide(self, state: PoolState) -> Decision:
        board = board_of(state, (self, state.device.alike), self._offer)
        if not board.count:
            return LeaveIdle(state.device.name, "no tenant has a candidate that may run here")
        waited = np.where(board.there, state.step - board.served_at, 0)
        scores = board.scores * (1.0 + waited / board.count) ** self.patience
        first = largest = int(scores.argmax())
        rule = "largest expected gain per cost, by time waited"
        oldest = int(waited.argmax())
        if waited[oldest] >= len(state.tenants) / self.share:
            first, rule = oldest, "fairness floor: waited longest"
        scores[first] = -np.inf
        second = largest if largest != first else int(scores.argmax())
        chosen, other = board.offers[first], board.offers[second]
        assert chosen is not None
        return self._start(state, chosen, rule, other if other is not chosen else None)

    def _start(self, state: PoolState, chosen: _Offer, rule: str, other: _Offer | None) -> StartTrial:
        if chosen.part is not None:
            return self._start_slice(state, chosen, chosen.part, rule, other)
        look = chosen.look
        rule = rule if look is FULL else f"{rule}; a look at {look.fraction:.0%} of the data"
        return start(
            state,
            chosen.tenant,
            chosen.index,
            rule,
            chosen.score,
            other,
            fraction=look.fraction,
            cost_factor=look.cost,
        )

    def _start_slice(
        self, state: PoolState, chosen: _Offer, offer: SliceOffer, rule: str, other: _Offer | None
    ) -> StartTrial:
        tenant, belief, device = chosen.tenant, chosen.tenant.belief, state.device
        assert isinstance(belief, CurveBelief)
        share = float(belief.rungs[offer.rung] / belief.rungs[-1])
        scale = float(device_scale(tenant, belief, device)[offer.candidate])
        part = TrialSlice(offer.rung, share, scale, tenant.rate(offer.candidate, device))
        goes_on = "begins" if belief.progress[offer.candidate] < 0 else "goes on"
        rule = f"{rule}; {goes_on} to {share:.0%} of the trial"
        return start(
            state,
            tenant,
            offer.candidate,
            rule,
            chosen.score,
            other,
            fraction=1.0,
            cost=offer.cost,
            part=part,
        )

    def _offer(self, tenant: Tenant, state: PoolState) -> _Offer | None:
        if isinstance(tenant.belief, CurveBelief):
            found = best_slice(tenant, state)
            if found is None:
                return None
            score = tenant.weight * urgency(tenant, state, found.cost) * found.rate
            return _Offer(tenant, found.candidate, score, part=found)
        mask = tenant.may_run(state.device, state.now)
        if not mask.any():
            return None
        costs = tenant.costs(state.device)
        belief, best = pending(tenant)
        rates = np.where(mask, expected_gain(belief, best, tenant.ceiling) / costs, -np.inf)
        index, look = int(rates.argmax()), FULL
        rate = float(rates[index])
        for each in tenant.looks:
            looks = np.where(mask, look_rates(tenant, belief, best, costs, each, rate), -np.inf)
            if looks.max() > rate:
                index, look, rate = int(looks.argmax()), each, float(looks.max())
        return _Offer(tenant, index, tenant.weight * urgency(tenant, state, costs[index]) * rate, look)


def urgency(tenant: Tenant, state: PoolState, cost: float) -> float:
    """1 without a deadline, up to 2 as the slack `deadline − now − cost` falls below the trial's own time."""
    if tenant.deadline == np.inf:
        return 1.0
    slack = max(tenant.deadline - state.now - cost, 0.0)
    return 1.0 + cost / (slack + cost)

"""A policy from two rules: which tenant, and which of its candidates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from easel.optimise.arrays import Array
from easel.records.decision import Decision, LeaveIdle, Reasons, RunnerUp, StartTrial, TrialSlice
from easel.schedule.policies.board import BestCandidate, board_of
from easel.schedule.state import PoolState, Tenant


class Policy(Protocol):
    """Chooses the next trial for `state.device`.

    Equal states give equal decisions; a decision never names a candidate that is taken, unaffordable or too
    late for its tenant; with nothing to run it is `LeaveIdle`.
    """

    @property
    def name(self) -> str: ...
    def decide(self, state: PoolState) -> Decision: ...


class CandidateRule(Protocol):
    def scores(self, tenant: Tenant, state: PoolState) -> Array:
        """`(K,)`, larger is better; the caller leaves out what may not run."""
        ...

    def depends_on(self, state: PoolState) -> Hashable:
        """All that `scores` reads of the pool besides the tenant and the device's speed and kind."""
        ...

    def rule(self) -> str: ...


class Ranking(NamedTuple):
    """Offers with a priority each, larger first; what to remember; the rule in words."""

    priorities: Array
    rule: str
    memory: tuple[object, ...] = ()


class TenantRule(Protocol):
    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        """Ties go to the earlier offer."""
        ...


def start(
    state: PoolState,
    tenant: Tenant,
    index: int,
    rule: str,
    score: float,
    runner_up: BestCandidate | None,
    memory: tuple[object, ...] = (),
    fraction: float = 1.0,
    cost_factor: float = 1.0,
    cost: float | None = None,
    part: TrialSlice | None = None,
) -> StartTrial:
    """The decision in full. A tenant with a budget lends the trial at most twice its predicted bill.

    `cost` is the time of the slice `part`, where not the whole trial is meant.
    """
    time = float(tenant.costs(state.device)[index]) * cost_factor if cost is None else cost
    bill = time * tenant.rate(index, state.device)
    limit = np.inf if tenant.budget == np.inf else min(tenant.left, 2.0 * bill)
    other = runner_up
    return StartTrial(
        tenant=tenant.name,
        candidate=tenant.candidates[index],
        index=index,
        device=state.device.name,
        fraction=fraction,
        limit=float(limit),
        memory=memory,
        slice=part,
        reasons=Reasons(
            rule=rule,
            mean=float(tenant.belief.mean[index]),
            deviation=float(tenant.belief.sd[index]),
            acquisition=float(score),
            cost=time,
            best_so_far=tenant.best,
            runner_up=None
            if other is None
            else RunnerUp(other.tenant.name, other.tenant.candidates[other.index], float(other.score)),
        ),
    )


@dataclass(frozen=True)
class Composed:
    """`candidates` scores within a tenant, `tenants` ranks the tenants' best offers.

    `warm` cheapest candidates of each tenant are run first, tenant by tenant (MM-GP-EI §6.1).
    """

    name: str
    tenants: TenantRule
    candidates: CandidateRule
    warm: int = 0

    def decide(self, state: PoolState) -> Decision:
        if self.warm:
            for tenant in sorted(state.tenants.values(), key=lambda t: t.starts):
                if tenant.starts >= self.warm:
                    break
                mask = tenant.may_run(state.device, state.now)
                if mask.any():
                    cost = tenant.costs(state.device)
                    index = int(np.where(mask, cost, np.inf).argmin())
                    return start(state, tenant, index, "warm start: cheapest", -float(cost[index]), None)
        device = state.device
        key = (self.candidates, self.candidates.depends_on(state), device.alike)
        offers = board_of(state, key, self._offer).present()
        if not offers:
            return LeaveIdle(state.device.name, "no tenant has a candidate that may run here")
        ranking = self.tenants.rank(state, offers)
        order = np.argsort(-ranking.priorities, kind="stable")[:2]
        chosen = offers[order[0]]
        other = offers[order[1]] if len(order) > 1 else None
        rule = f"{ranking.rule}, {self.candidates.rule()}"
        return start(state, chosen.tenant, chosen.index, rule, chosen.score, other, ranking.memory)

    def _offer(self, tenant: Tenant, state: PoolState) -> BestCandidate | None:
        mask = tenant.may_run(state.device, state.now)
        if not mask.any():
            return None
        scores = np.where(mask, self.candidates.scores(tenant, state), -np.inf)
        index = int(scores.argmax())
        return BestCandidate(tenant, index, float(scores[index]))

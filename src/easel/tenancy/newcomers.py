"""Whoever has no model yet is served first: a policy around a policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from easel.records.decision import Decision, StartTrial
from easel.schedule.policies import Policy
from easel.schedule.state import PoolState, Tenant

RULE = "first model"


@dataclass(frozen=True)
class NewcomersFirst:
    """The policy's own choice among tenants that have nothing yet and nothing running, if there are any.

    A first model helps its owner more than any later one. A tenant of weight 0 asked not to be in anybody's way.
    """

    policy: Policy

    @property
    def name(self) -> str:
        return self.policy.name

    def decide(self, state: PoolState) -> Decision:
        new = {name: one for name, one in state.tenants.items() if is_newcomer(one)}
        if new and len(new) < len(state.tenants):
            chosen = self.policy.decide(replace(state, tenants=new))
            if isinstance(chosen, StartTrial):
                reasons = replace(chosen.reasons, rule=f"{RULE}: {chosen.reasons.rule}")
                return replace(chosen, reasons=reasons)
        return self.policy.decide(state)


def is_newcomer(tenant: Tenant) -> bool:
    return not (tenant.held or tenant.pulls or tenant.running) and tenant.weight > 0

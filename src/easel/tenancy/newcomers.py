"""Whoever has no model yet is served first, by something short, and others' slices give way to it. Pure.

So that somebody always can, what takes long and cannot be stopped is begun only beside something that can.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from easel.ids import JobId
from easel.records.decision import Decision, StartTrial
from easel.schedule.policies import Policy
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.tenancy.source import Flight

RULE = "first model"
FIRST_S = 3.0
"""A first model is wanted within so many seconds, where anything is thought to be that quick."""
SOON_S, OTHERS = 6.0, 8
"""What ends within so many seconds is soon out of the way; so many other choices are looked at for what is not."""


@dataclass(frozen=True)
class NewcomersFirst:
    """The policy's own choice among tenants that have nothing yet and nothing running, if there are any.

    A first model helps its owner more than any later one, and soon more than late. A tenant of weight 0 asked not to be
    in anybody's way.
    """

    policy: Policy

    @property
    def name(self) -> str:
        return self.policy.name

    def decide(self, state: PoolState) -> Decision:
        chosen = first = self._decide(state)
        for _ in range(OTHERS):
            if not isinstance(chosen, StartTrial):
                return first  # nothing else may run: better this than an idle device
            if not _in_the_way(state, chosen):
                return chosen
            tenant = state.tenants[chosen.tenant]
            taken = tenant.taken.copy()
            taken[chosen.index] = True
            state = replace(state, tenants={**state.tenants, tenant.name: tenant.changed(taken=taken)})
            chosen = self._decide(state)
        return first

    def _decide(self, state: PoolState) -> Decision:
        new = {name: one for name, one in state.tenants.items() if not one.pulls and is_newcomer(one)}
        if new and len(new) < len(state.tenants):
            chosen = self._quick(replace(state, tenants=new))
            if isinstance(chosen, StartTrial):
                reasons = replace(chosen.reasons, rule=f"{RULE}: {chosen.reasons.rule}")
                return replace(chosen, reasons=reasons)
        return self._quick(state)

    def _quick(self, state: PoolState) -> Decision:
        """The policy's choice; of a newcomer the best that is soon there, where anything is."""
        chosen = self.policy.decide(state)
        if not isinstance(chosen, StartTrial) or chosen.reasons.cost <= FIRST_S:
            return chosen
        tenant = state.tenants[chosen.tenant]
        if not is_newcomer(tenant):
            return chosen
        hurried = tenant.changed(deadline=min(tenant.deadline, state.now + FIRST_S))
        soon = self.policy.decide(replace(state, tenants={tenant.name: hurried}))
        return soon if isinstance(soon, StartTrial) else chosen


def _in_the_way(state: PoolState, trial: StartTrial) -> bool:
    """Whether it takes long, cannot be stopped, and nothing runs that could make room for a newcomer."""
    return not _makes_room(state.tenants[trial.tenant], trial) and not any(
        _makes_room(tenant, other) for tenant in state.tenants.values() for other in tenant.running
    )


def _makes_room(tenant: Tenant, trial: StartTrial) -> bool:
    stops = (
        tenant.stops is None or not 0 <= trial.index < len(tenant.stops) or bool(tenant.stops[trial.index])
    )
    return stops or trial.reasons.cost <= SOON_S


def is_newcomer(tenant: Tenant) -> bool:
    """Returns whether nothing of it was ever run, or runs, and it may be served.

    Who asks of all tenants asks first whether one has `pulls`: nearly all have, and a call for each is what takes time.
    """
    return not (tenant.pulls or tenant.running or tenant.held) and tenant.weight > 0


def who_gives_way(
    state: PoolState,
    flights: Mapping[JobId, Flight],
    active: Collection[JobId],
    giving: Collection[JobId],
    devices: Sequence[PoolDevice],
) -> list[JobId]:
    """Slices to be asked to stop at their next checkpoint: one for each newcomer that could run on some device and for
    whom nobody is `giving` way yet. Those `active` ones that are thought to take longest, of tenants that have a model
    or lose nothing by it: what waits in a queue holds no device.
    """
    waiting = sum(
        bool(one.open.any()) and any(_fits(one, device) for device in devices)
        for one in state.tenants.values()
        if not one.pulls and is_newcomer(one)
    )
    missing = waiting - len([job for job in flights if job in giving])
    if missing <= 0:
        return []
    able: Sequence[Flight] = sorted(
        (flights[job] for job in active if job not in giving and job in flights),
        key=lambda one: -one.trial.reasons.cost,
    )
    return [one.job_id for one in able if _may_give_way(one, state)][:missing]


def _fits(tenant: Tenant, device: PoolDevice) -> bool:
    if device.kept_for not in ("", tenant.project):
        return False
    return not tenant.needs or device.room is None or bool((tenant.fits(device.room) & tenant.open).any())


def _may_give_way(flight: Flight, state: PoolState) -> bool:
    tenant = state.tenants.get(flight.trial.tenant)
    return flight.stops and tenant is not None and (bool(tenant.pulls) or flight.goes_back)

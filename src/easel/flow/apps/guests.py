"""Who shares the pool with the apps under the same policy: studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from easel.flow.apps.pool import Played, Visit, replay
from easel.records.decision import StartTrial
from easel.records.job import Job
from easel.schedule.state import Device, PoolState, Tenant
from easel.store.engine import Tx


@dataclass(frozen=True)
class Guest:
    """Somebody beside the apps who shares the pool under the same policy: `tenant` as it would join now.

    `starts` are the moments at which it was served before; `start` carries out the decision to serve it again.
    """

    tenant: Tenant
    joined_at: datetime
    starts: tuple[datetime, ...]
    start: Callable[[Tx, StartTrial], Job | None]


def with_guests(
    tenants: Sequence[Tenant],
    history: Sequence[tuple[datetime, Played]],
    guests: Sequence[Guest],
    device: Device,
    now: float,
) -> PoolState:
    """The pool with everybody in it. Whoever was served, when it was whose turn counts for all alike."""
    moments: list[tuple[datetime, Played | Visit]] = list(history)
    for guest in guests:
        moments += [(at, Visit(guest.tenant.name)) for at in guest.starts]
    ordered = sorted(moments, key=lambda each: each[0])
    state = replay(tenants, [each for _, each in ordered], device, now)
    everybody = dict(state.tenants)
    for guest in guests:
        turns = [i + 1 for i, (_, each) in enumerate(ordered) if each == Visit(guest.tenant.name)]
        joined = sum(at < guest.joined_at for at, _ in ordered)
        everybody[guest.tenant.name] = guest.tenant.changed(served_at=max([joined, *turns]))
    return replace(state, tenants=everybody)

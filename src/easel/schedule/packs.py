"""Which trials go along with the one that a policy chose: a GPU trains small networks together for less. Pure.

A pack is the set of trials of one tenant with the largest expected gain for its time, found greedily: a trial goes
along as long as it adds more for the time that it adds than those before it have for all of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from easel.declare.resources import Resources, Room
from easel.records.decision import LeaveIdle, StartTrial
from easel.records.packing import Packing, PackPlace
from easel.schedule.curve_belief import CurveBelief
from easel.schedule.policies.compose import Policy
from easel.schedule.policies.slices import device_scale
from easel.schedule.state import Mask, PoolState, Tenant

MOST_TRIALS = 8
MOST_NETWORKS = 64
AT_ONCE = 8
"""So many networks are one program; more of them take turns."""
EACH_MORE = 0.12
"""What each further network adds to a step of one: five take 1.4 to 1.5 times as long, eight 1.85 times
(docs/results/gpu_packing.md)."""
BEGIN_SHARE = 0.8
"""At most this share of a trial's seconds is taken for what is done once."""


def program_time(networks: int) -> float:
    """Returns how long so many networks take together, against one."""
    full, rest = divmod(networks, AT_ONCE)
    return full * (1.0 + EACH_MORE * (AT_ONCE - 1)) + (1.0 + EACH_MORE * (rest - 1) if rest else 0.0)


def share_of(need: Resources, size: int) -> Resources:
    """Returns what one of `size` trials in a process takes of what the process does."""
    if size <= 1:
        return need
    return Resources(max(0.5, round(2 * need.vcpu / size) / 2), need.memory_mb, round(need.gpus / size, 4))


@dataclass(frozen=True)
class _Chosen:
    """A trial of the pack, and what it would take `alone`; the cost of its reasons is what it adds."""

    trial: StartTrial
    alone: float


def with_companions(policy: Policy, state: PoolState, first: StartTrial) -> tuple[StartTrial, ...]:
    """Returns the trial that was chosen for the state's device, with those that are best trained along with it.

    A tenant that has no result yet gets its first by itself, as soon as can be.
    """
    device, tenant = state.device, state.tenant(first.tenant)
    packs = tenant.packs_on.get(device.kind)
    own = None if packs is None else packs[first.index]
    if packs is None or own is None or first.fraction < 1.0 or not tenant.pulls:
        return (first,)
    chosen, networks = [_Chosen(first, first.reasons.cost)], own.networks
    rate, cost = first.reasons.acquisition, first.reasons.cost
    after, alike = state.started(first), _alike(tenant, packs, first)
    while len(chosen) < MOST_TRIALS and own.networks + networks <= MOST_NETWORKS:
        found = _next(policy, after, first, alike, packs, networks)
        if found is None or found.trial.reasons.acquisition < rate:
            break
        more = found.trial.reasons
        if not _has_room(device.room, tenant, device.kind, [*chosen, found]):
            break
        rate = (rate * cost + more.acquisition * more.cost) / (cost + more.cost)
        cost, networks = cost + more.cost, networks + own.networks
        chosen.append(found)
        alike[found.trial.index] = False
        after = after.started(found.trial)
    return _as_pack(tenant, state, chosen, cost) if len(chosen) > 1 else (first,)


def _alike(tenant: Tenant, packs: Sequence[Packing | None], first: StartTrial) -> Mask:
    """`(K,)`: candidates that may be trained as one program with `first`, and are as far as it."""
    own = packs[first.index]
    found = np.array([one is not None and own is not None and one.shape == own.shape for one in packs])
    if isinstance(tenant.belief, CurveBelief):
        found &= tenant.belief.progress == tenant.belief.progress[first.index]
    found[first.index] = False
    return np.asarray(found, dtype=bool)


def _next(
    policy: Policy,
    state: PoolState,
    first: StartTrial,
    alike: Mask,
    packs: Sequence[Packing | None],
    networks: int,
) -> _Chosen | None:
    """Returns the best of those `alike` once the others run, at the time that it adds to theirs."""
    tenant, device = state.tenant(first.tenant), state.device
    costs = tenant.costs(device)
    added = np.array([_added(float(c), one, networks) for c, one in zip(costs, packs, strict=True)])
    taken = tenant.taken | ~alike
    while not taken.all():
        cost_on = MappingProxyType({device.kind: costs * added})
        cheaper = replace(tenant, cost_on=cost_on, taken=taken, memo={})
        found = policy.decide(replace(state, tenants={tenant.name: cheaper}))
        if isinstance(found, LeaveIdle):
            return None
        if _rung(found) == _rung(first):
            return _Chosen(found, found.reasons.cost / float(added[found.index]))
        taken = taken.copy()
        taken[found.index] = True
    return None


def _rung(trial: StartTrial) -> int | None:
    return None if trial.slice is None else trial.slice.rung


def _added(cost: float, one: Packing | None, networks: int) -> float:
    """Returns the share of its own time that a trial adds to a program that trains `networks` already."""
    if one is None or not np.isfinite(cost):
        return 1.0
    begin = min(one.begin / cost, BEGIN_SHARE) if cost > 0 else 0.0
    more = program_time(networks + one.networks) - program_time(networks)
    return (1.0 - begin) * more / program_time(one.networks)


def _has_room(room: Room | None, tenant: Tenant, kind: str, chosen: Sequence[_Chosen]) -> bool:
    for one in chosen:
        need = tenant.need(one.trial.index, kind)
        if room is None or need is None:
            continue
        part = share_of(need, len(chosen))
        if not room.fits(part):
            return False
        room = room.less(part, room.choose_gpus(part.gpus) or ())
    return True


def _as_pack(
    tenant: Tenant, state: PoolState, chosen: Sequence[_Chosen], cost: float
) -> tuple[StartTrial, ...]:
    """Returns each with its place in the pack: its time is that of all, its bill its part of theirs."""
    device, size = state.device, len(chosen)
    name, first = f"{tenant.name}.{state.step + 1}", chosen[0].trial
    scales = device_scale(tenant, tenant.belief, device) if isinstance(tenant.belief, CurveBelief) else None
    found = []
    for one in chosen:
        trial, bill = one.trial, cost * tenant.rate(one.trial.index, device) / size
        reasons = replace(
            trial.reasons,
            rule=f"{first.reasons.rule}; one of {size} that are trained together",
            cost=cost,
            runner_up=first.reasons.runner_up,
        )
        limit = np.inf if tenant.budget == np.inf else min(tenant.left / size, 2.0 * bill)
        part = trial.slice
        if part is not None and scales is not None:
            part = replace(part, scale=float(scales[trial.index]))
        place = PackPlace(name, size, max(1.0, cost / one.alone) if one.alone > 0 else 1.0)
        found.append(replace(trial, reasons=reasons, limit=float(limit), slice=part, pack=place))
    return tuple(found)

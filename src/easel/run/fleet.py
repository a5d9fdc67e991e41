"""How many workers of which size an engine should have. Deciding only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from easel.declare.resources import Resources, Room
from easel.records.worker import Placement
from easel.run.executors.engine import PlacementState


@dataclass(frozen=True, slots=True)
class Ask:
    """Work that no worker has: `workers` members of this size each."""

    resources: Resources
    workers: int = 1
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What there is. `idle` are placements whose workers have nothing to do, `ended` those whose workers have left."""

    placements: Sequence[Placement]
    standings: Mapping[str, PlacementState]
    idle: frozenset[str]
    ended: frozenset[str] = frozenset()


def fleet_of(
    placements: Sequence[Placement],
    standings: Mapping[str, PlacementState],
    present: Set[str],
    left: Set[str],
    busy: Set[str],
) -> Fleet:
    """Returns the fleet by what the engine says of placements and we know of workers: present, departed, or with work.

    A placement is there with its last worker, and has something to do with any. One whose workers have yet to join
    counts as idle: it comes up for what waits now.
    """
    up, idle, ended = set[str](), set[str](), set[str]()
    for each in placements:
        if not present.isdisjoint(each.members):
            up.add(each.name)
        elif not left.isdisjoint(each.members):
            ended.add(each.name)
        if each.name not in ended and busy.isdisjoint(each.members):
            idle.add(each.name)
    seen = {**standings, **dict.fromkeys(up, PlacementState.UP)}
    return Fleet(placements, seen, frozenset(idle), frozenset(ended))


@dataclass(frozen=True, slots=True)
class FleetPlan:
    place: tuple[Ask, ...]
    cancel: tuple[str, ...]


def plan(waiting: Sequence[Ask], fleet: Fleet, machines: Sequence[Room], most: int) -> FleetPlan:
    """One worker for each thing that waits, as far as the cluster could run them side by side.

    Those that come up or have nothing to do count first. What has been asked for and is needed no more is
    cancelled while it still waits; a worker that is up ends by itself. One whose worker has left and that waits
    once more (an engine put it back into its queue, behind our back) is of no use to anybody.
    """
    free: list[Placement] = []
    surplus: list[str] = []
    for each in fleet.placements:
        standing = fleet.standings.get(each.name)
        if each.name in fleet.ended:
            surplus += [each.name] if standing is PlacementState.WAITING else []
        elif standing is not PlacementState.UP or each.name in fleet.idle:
            free.append(each)
    room = most - len(fleet.placements)
    place: list[Ask] = []
    made: Counter[tuple[Resources, int]] = Counter()
    for ask in waiting:
        shape = (ask.resources, ask.workers)
        able = [each for each in free if _holds(each, ask)]
        if able:
            free.remove(min(able, key=lambda each: each.resources.vcpu))
        elif room > 0 and made[shape] + _there(fleet, shape) < _side_by_side(shape, machines):
            room -= 1
            made[shape] += 1
            place.append(ask)
    surplus += [each.name for each in free if fleet.standings.get(each.name) is not PlacementState.UP]
    return FleetPlan(tuple(place), tuple(surplus))


def _holds(placement: Placement, ask: Ask) -> bool:
    """Whether a worker there could take it: one of at least its size, and as many side by side."""
    has, asked = placement.resources, ask.resources
    fits = has.vcpu >= asked.vcpu and has.memory_mb >= asked.memory_mb and has.gpus >= asked.gpus
    return fits and placement.count == ask.workers


def _there(fleet: Fleet, shape: tuple[Resources, int]) -> int:
    return sum((each.resources, each.count) == shape for each in fleet.placements)


def _side_by_side(shape: tuple[Resources, int], machines: Sequence[Room]) -> int:
    """How many of this shape the whole cluster could hold; at least one, which then waits for a larger cluster."""
    asked, count = shape
    fit = 0
    for room in machines:
        by = [room.vcpu / asked.vcpu, room.memory_mb / asked.memory_mb]
        if asked.gpus:
            by.append(len(room.gpus) / asked.gpus)
        fit += max(0, math.floor(min(by) + 1e-9))
    return max(1, fit // count) if machines else 10**6

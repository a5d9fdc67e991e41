"""Which jobs that may be preempted are stopped for somebody with a better claim. Deciding only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from easel.declare.resources import Resources, Room
from easel.records.queue import Line, Owner
from easel.run.share import Shares

AFTER_S = 5.0
"""Whoever has waited for less is not worth stopping anybody."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A job that waits for room, of one device."""

    owner: Owner
    asked: Resources
    waited_s: float
    wants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreemptibleJob:
    """A job that runs. One that is not `preemptible` is never stopped; one that is `leaving` was asked already."""

    key: str
    owner: Owner
    device: str
    asked: Resources
    ran_s: float
    preemptible: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class ContendedDevice:
    """A device that may get work: what it has, its labels, and the project it is reserved for, if it is."""

    name: str
    capacity: Room
    labels: Mapping[str, str] = field(default_factory=dict)
    kept_for: str | None = None


def preempted(
    waiting: Sequence[Claimant],
    running: Sequence[PreemptibleJob],
    devices: Sequence[ContendedDevice],
    lines: Mapping[Owner, Line],
) -> list[str]:
    """Returns the keys to stop for the job with the best claim: none where something fits or is on its way already.

    Only jobs whose owners have a worse claim give way, those first that began last and so lose least; and no more of
    them than are needed, on the device where the fewest are.
    """
    if any(one.leaving for one in running):
        return []
    shares = Shares.of(lines.values())
    able = [one for one in waiting if one.waited_s >= AFTER_S and one.owner in lines]
    for claimant in sorted(able, key=lambda one: shares.claim(lines[one.owner])):
        found = _for(claimant, running, devices, lines, shares)
        if found is None:  # there is room for it: it starts by itself
            continue
        if found:
            return found
    return []


def _for(
    claimant: Claimant,
    running: Sequence[PreemptibleJob],
    devices: Sequence[ContendedDevice],
    lines: Mapping[Owner, Line],
    shares: Shares,
) -> list[str] | None:
    """The keys to stop for this one; None where it fits now, empty where stopping does not help."""
    claim, best = shares.claim(lines[claimant.owner]), None
    for device in devices:
        if any(device.labels.get(name) != value for name, value in claimant.wants.items()):
            continue
        if device.kept_for not in (None, claimant.owner[0]):
            continue
        here = [one for one in running if one.device == device.name]
        room, cards = device.capacity, {}
        for one in here:
            cards[one.key] = room.choose_gpus(one.asked.gpus) or ()
            room = room.less(one.asked, cards[one.key])
        if room.fits(claimant.asked):
            return None
        stopped: list[str] = []
        for one in sorted(here, key=lambda one: one.ran_s):
            line = lines.get(one.owner)
            if (
                one.preemptible
                and line is not None
                and shares.claim(line) > claim
                and one.owner != claimant.owner
            ):
                room = room.plus(one.asked, cards[one.key])
                stopped.append(one.key)
            if room.fits(claimant.asked):
                break
        if stopped and room.fits(claimant.asked) and (best is None or len(stopped) < len(best)):
            best = stopped
    return best or []

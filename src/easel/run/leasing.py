"""Which waiting work goes to which of the workers that ask. Deciding only.

The same rule as on one device (`placement.place`): in order, smaller ones around a larger one for a while. A
gang, the members of one distributed job, goes out whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from easel.records.worker import AttemptOffer, Puller
from easel.run.placement import PATIENCE_S


def give(offers: Iterable[AttemptOffer], pullers: Sequence[Puller]) -> dict[str, str]:
    """`offers` in order of arrival; returns which key goes to which worker. Cheaper workers are filled first."""
    asking = sorted(pullers, key=lambda each: each.price)
    free = {puller.name: puller for puller in asking if puller.open}
    given: dict[str, str] = {}
    gangs: dict[str, list[AttemptOffer]] = {}
    for offer in offers:
        members = gangs.setdefault(offer.gang, [])
        members.append(offer)
        if len(members) < offer.size:
            continue
        placed = _place(members, free)
        if placed is not None:
            given |= placed
            for name in set(placed.values()):
                if not free[name].open:
                    del free[name]
        elif offer.waited_s > PATIENCE_S and any(_could(member, free) for member in members):
            # Nobody may pass it any more on the workers that it waits for.
            free = {name: each for name, each in free.items() if not _suits(members[0], each)}
        if not free:
            break
    return given


def _place(members: Sequence[AttemptOffer], free: dict[str, Puller]) -> Mapping[str, str] | None:
    """All members, spread over as many workers as there are; changes `free` only if all fit."""
    left: dict[str, Puller] = {}
    placed: dict[str, str] = {}
    for member in members:
        used = set(placed.values())
        able = (name for name in free if _fits(member, left.get(name, free[name])))
        chosen = next(able, None) if not used else min(able, key=lambda name: name in used, default=None)
        if chosen is None:
            return None
        left[chosen] = _less(left.get(chosen, free[chosen]), member)
        placed[member.key] = chosen
    free.update(left)
    return placed


def _suits(offer: AttemptOffer, puller: Puller) -> bool:
    """Whether the worker is of the kind that is wanted and lasts long enough."""
    if any(puller.labels.get(name) != value for name, value in offer.wants.items()):
        return False
    return puller.remaining_s is None or (offer.time_limit_s or 0.0) <= puller.remaining_s


def _could(offer: AttemptOffer, free: Mapping[str, Puller]) -> bool:
    return any(_suits(offer, puller) for puller in free.values())


def _fits(offer: AttemptOffer, puller: Puller) -> bool:
    if not _suits(offer, puller):
        return False
    return puller.room.fits(offer.resources) or (offer.short and puller.ahead > 0)


def _less(puller: Puller, offer: AttemptOffer) -> Puller:
    gpus = puller.room.choose_gpus(offer.resources.gpus)
    if gpus is None or not puller.room.fits(offer.resources):
        return replace(puller, ahead=puller.ahead - 1)
    return replace(puller, room=puller.room.less(offer.resources, gpus))

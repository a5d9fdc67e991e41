"""Which waiting attempts start now on one device: in order, small ones around a large one for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from easel.declare.resources import Resources, Room

PATIENCE_S = 60.0
"""After this long nobody may pass a waiting attempt: the device drains until it fits."""


def could_hold(
    rooms: Iterable[tuple[Room, Mapping[str, str]]], asked: Resources, wants: Mapping[str, str], workers: int
) -> bool:
    """Whether enough devices of this capacity and these labels could take part if they were empty."""
    able = sum(
        room.fits(asked) and all(labels.get(name) == value for name, value in wants.items())
        for room, labels in rooms
    )
    return able >= workers


@dataclass(frozen=True, slots=True)
class WaitingAttempt:
    key: str
    asked: Resources
    waited_s: float


@dataclass(frozen=True, slots=True)
class Placed:
    key: str
    gpus: tuple[int, ...]


def place(waiting: Iterable[WaitingAttempt], room: Room, drained: Room | None = None) -> list[Placed]:
    """`waiting` in order of arrival. Never gives out more than `room`.

    `drained` is what would be free if all but interactive sessions had ended. Nobody knows when those end: what does
    not fit beside them holds nobody back.
    """
    placed: list[Placed] = []
    for each in waiting:
        if room.vcpu < 0.5:
            break
        gpus = room.choose_gpus(each.asked.gpus)
        if gpus is not None and room.fits(each.asked):
            room = room.less(each.asked, gpus)
            placed.append(Placed(each.key, gpus))
        elif each.waited_s > PATIENCE_S and (drained is None or _would_fit(drained, each.asked)):
            break
    return placed


def _would_fit(room: Room, asked: Resources) -> bool:
    return room.fits(asked) and room.choose_gpus(asked.gpus) is not None

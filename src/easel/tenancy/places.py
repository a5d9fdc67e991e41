"""Devices as they are, less what runs on them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from easel.declare.resources import Resources, Room
from easel.price.book import TERMS
from easel.records.device import Device
from easel.schedule.interruptions import NEVER, Interruptions
from easel.schedule.state import PoolDevice

SPEED, PRICE = "speed", "price"
"""Labels (or notes) of a device that say how fast and how dear it is against the reference of 1."""
GPU, BESIDE = "gpu", "beside "
"""What the kinds of places on GPUs begin with, and of places without one in a pool that has some."""


@dataclass(frozen=True)
class Taken:
    """What one trial or job holds on the device where it runs, or if it `waits` on the one for which it was `meant`."""

    device: str
    resources: Resources
    meant: str = ""
    waits: bool = False


@dataclass(frozen=True)
class PlaceTerms:
    """What a device costs against 1 for others, and how often it is taken away."""

    price: float = 1.0
    interruptions: Interruptions = NEVER


def idle(
    devices: Sequence[Device], taken: Iterable[Taken], terms: Mapping[str, PlaceTerms] | None = None
) -> list[PoolDevice]:
    """Devices that may get work, with the room that is left on them, fastest first.

    `terms` are those of devices that have some of their own (`spot`).
    """
    known = terms or {}
    room = {device.name: device.capacity for device in devices if device.open}
    whole, names = dict(room), {device.name for device in devices}
    for one in taken:
        if (name := _holder(one, whole, room, names)) is not None:
            room[name] = less(room[name], one.resources)
    gpus = sorted({kind for device in devices if device.name in room and (kind := gpu_kind(device))})
    found = []
    for device in devices:
        if device.name not in room:
            continue
        own = known.get(device.labels.get(TERMS, ""), PlaceTerms())
        place = PoolDevice(
            device.name,
            speed=speed_of(device),
            price=number_in(device.labels, PRICE) * own.price,
            kind=device.notes.get("kind", ""),
            room=room[device.name],
            interruptions=own.interruptions,
            kept_for=device.kept_for or "",
        )
        kind = gpu_kind(device)
        if kind and any(share > 0 for share in room[device.name].gpus):
            found.append(replace(place, kind=kind))
        if gpus and not place.kind:
            place = replace(place, kind=f"{BESIDE}{gpus[0]}")
        found.append(place)
    # GPUs first: what is better off there should find them free, and not a core.
    return sorted(found, key=lambda place: (not place.kind.startswith(GPU), -place.speed))


def _holder(
    one: Taken, whole: Mapping[str, Room], left: Mapping[str, Room], names: Collection[str]
) -> str | None:
    """Returns the device of these `whole` ones that something takes room of: its own, the one for which it was meant,
    or of those that could hold it the one with most room `left`.

    None for what waits and fits nowhere, and for what runs where no more work is given.
    """
    if one.device in whole and (not one.waits or whole[one.device].fits(one.resources)):
        return one.device
    if not one.waits and one.device in names:
        return None
    able = [name for name, room in whole.items() if room.fits(one.resources)]
    if one.meant in able:
        return one.meant
    return max(able, key=lambda name: left[name].vcpu, default=None)


def gpu_kind(device: Device) -> str:
    """What its GPUs are called, by its label or by what its driver says; empty where it has none that work."""
    if not device.capacity.gpus or device.notes.get("gpu fault"):
        return ""
    name = device.labels.get(GPU) or device.notes.get(GPU, "")
    return f"{GPU} {name}".strip()


def beside(place: PoolDevice, left: Room | None) -> PoolDevice:
    """The same device after another place on it took its part: what GPUs it has are that one's to give."""
    if left is None or place.room is None:
        return place
    return replace(place, room=Room(left.vcpu, left.memory_mb, ()))


def less(room: Room, asked: Resources) -> Room:
    """May go below zero where more was promised than there is: then nothing fits."""
    gpus = room.choose_gpus(asked.gpus) or ()
    return room.less(asked, gpus)


def told(place: PoolDevice, largest: Resources) -> PoolDevice:
    """The device as a policy sees it: room beyond what the `largest` trial could use makes no difference, so that
    devices on which the same trials fit are alike."""
    if place.room is None:
        return place
    room = place.room
    if place.kind.startswith(GPU):
        return place
    free = sorted((share for share in room.gpus if share > 0), reverse=True)
    most = max(int(largest.gpus), 1) if largest.gpus > 0 else 0
    clipped = Room(min(room.vcpu, largest.vcpu), min(room.memory_mb, largest.memory_mb), tuple(free[:most]))
    return replace(place, room=clipped)


def has_room(place: PoolDevice) -> bool:
    return place.room is None or (place.room.vcpu >= 0.5 and place.room.memory_mb >= 16)


def after(place: PoolDevice, asked: Resources) -> PoolDevice:
    """The device once a trial holds what it asked for."""
    return place if place.room is None else replace(place, room=less(place.room, asked))


def wants_of(device: Device) -> dict[str, str]:
    """What a job asks for so that it runs on such a device; nothing where the device says nothing of itself."""
    return {name: value for name, value in device.labels.items() if name in (SPEED, PRICE, TERMS)}


def strayed(wanted: Iterable[Mapping[str, str]], devices: Sequence[Device]) -> list[bool]:
    """Returns for each of what jobs want whether no device that may get work has it."""
    there = [device.labels for device in devices if device.open]
    return [bool(asked) and not any(asked.items() <= labels.items() for labels in there) for asked in wanted]


def speed_of(device: Device) -> float:
    """Returns how fast a device says it is, against 1 for the reference."""
    return number_in(device.labels, SPEED, device.notes.get(SPEED, ""))


def number_in(labels: Mapping[str, str], name: str, note: str = "") -> float:
    """Returns what a device says of its speed or price, or `note` else; 1 where that is no positive number."""
    try:
        value = float(labels.get(name) or note or "1")
    except ValueError:
        return 1.0
    return value if 0 < value < float("inf") else 1.0

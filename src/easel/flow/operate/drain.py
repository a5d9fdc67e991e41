"""Emptying a device: no more work; what it has goes on until a deadline, then is stopped and tried again elsewhere.

A device that is gone for good is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from easel.errors import Conflict, InvalidInput, NotFound
from easel.records.attempt import AttemptKey
from easel.records.device import Device, Drain
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.store import devices, jobs, offers, reservations
from easel.store.devices import ENGINES
from easel.store.engine import Store, Tx


@dataclass(frozen=True, slots=True)
class Emptying:
    """Devices that get nothing more, and attempts on them whose time is up."""

    devices: frozenset[str]
    stop: frozenset[str]


def drain(tx: Tx, caller: Caller, name: str, by: datetime | None, reason: str) -> Device:
    """Give a device no more work. A second drain changes deadline and reason."""
    device = _device(tx, name)
    if device.executor in ENGINES:
        raise InvalidInput(
            f"{name} is placed by {device.executor}, which gives it its work: drain the machine there "
            "(`scontrol update nodename=… state=drain`, `ray drain-node`)"
        )
    if by is not None and by <= tx.now:
        raise InvalidInput(f"the deadline {by:%Y-%m-%d %H:%M} UTC has passed: name a later one, or none")
    since = device.drain.since if device.drain else tx.now
    devices.set_drain(tx, name, Drain(since, by, reason))
    body = {"by": by.isoformat() if by else None, "reason": reason}
    tx.emit("device.draining", name, actor=caller.user.id, body=body)
    return _device(tx, name)


def undrain(tx: Tx, caller: Caller, name: str) -> Device:
    """Give a device work again."""
    device = _device(tx, name)
    if device.drain is not None:
        devices.set_drain(tx, name, None)
        tx.emit("device.opened", name, actor=caller.user.id)
    return _device(tx, name)


def remove(tx: Tx, caller: Caller, name: str) -> None:
    """Remove a device that is gone for good, with its reservations. What ran there stays in the jobs' history."""
    device = _device(tx, name)
    if device.connected:
        raise Conflict(f"{name} is connected: stop its worker first (`easel drain {name}` empties it)")
    if running := running_on(tx).get(name, 0):
        raise Conflict(
            f"{running} of the jobs that ran on {name} are not given up yet: they are tried again elsewhere within a "
            "minute or so; remove it then, or kill them"
        )
    cancelled = reservations.remove_of(tx, name)
    offers.remove_workers(tx, [name])
    tx.emit("device.removed", name, actor=caller.user.id, body={"reservations": cancelled})


def emptying(store: Store) -> Emptying:
    """Returns what the controller has to see to."""
    with store.read() as tx:
        drained = devices.drained(tx)
        over = [name for name, drain in drained.items() if drain.by is not None and drain.by <= tx.now]
        stop = _running_on(tx, over) if over else frozenset()
    return Emptying(frozenset(drained), stop)


def running_on(tx: Tx) -> dict[str, int]:
    """How many attempts each device has."""
    counted: dict[str, int] = {}
    for row in jobs.active(tx):
        if row.device and row.state != JobState.LAUNCHING.value:
            counted[row.device] = counted.get(row.device, 0) + 1
    return counted


def _running_on(tx: Tx, names: list[str]) -> frozenset[str]:
    """A job that is launching may still wait for any device; of a distributed one every member counts."""
    here = {
        str(AttemptKey(row.id, row.attempt))
        for row in jobs.active(tx)
        if row.device in names and row.state != JobState.LAUNCHING.value
    }
    leased = {
        row.gang
        for rows in offers.of_devices(tx, names).values()
        for row in rows
        if not row.over and not row.forgotten
    }
    return frozenset(here | leased)


def _device(tx: Tx, name: str) -> Device:
    found = next((device for device in devices.list_devices(tx) if device.name == name), None)
    if found is None:
        raise NotFound(f"there is no device {name!r}: see `easel devices`")
    return found

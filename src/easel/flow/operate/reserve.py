"""Keeping a device for one project for a while: others begin nothing there; what runs may end, unless it gives way."""

from __future__ import annotations

from datetime import datetime, timedelta

from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.jobs.preempt import may_be_stopped
from easel.records.attempt import AttemptKey
from easel.records.device import Reservation
from easel.records.identity import Caller
from easel.store import devices, identity, queue_now, reservations
from easel.store.devices import ENGINES
from easel.store.engine import Store, Tx

LONGEST = timedelta(days=366)


def reserve(tx: Tx, caller: Caller, device: str, project: str, start: datetime, end: datetime) -> Reservation:
    """Keeps a device for a project; refuses what overlaps a reservation for another."""
    found = next((one for one in devices.list_devices(tx) if one.name == device), None)
    if found is None:
        raise NotFound(f"there is no device {device!r}: see `easel devices`")
    if found.executor in ENGINES:
        raise InvalidInput(
            f"{device} is placed by {found.executor}, which gives it its work: reserve it there"
        )
    if not start < end or end <= tx.now:
        raise InvalidInput("a reservation ends after it begins, and not in the past")
    if end - start > LONGEST:
        raise InvalidInput("a reservation lasts for at most a year")
    owner = identity.project_named(tx, project)
    if owner is None:
        raise NotFound(f"there is no project {project!r}")
    for other in reservations.to_come(tx):
        if (
            other.device == device
            and other.project_id != owner.id
            and other.start < end
            and start < other.end
        ):
            raise Conflict(
                f"{device} is reserved for {other.project} from {other.start:%Y-%m-%d %H:%M} to"
                f" {other.end:%Y-%m-%d %H:%M} UTC: cancel that first (`easel reservations cancel {other.id}`)"
            )
    made = reservations.add(tx, device, owner.id, start, end, caller.user.id)
    body = {"device": device, "project": owner.name, "start": start.isoformat(), "end": end.isoformat()}
    tx.emit("device.reserved", device, actor=caller.user.id, body={"id": made, **body})
    return Reservation(made, device, owner.id, owner.name, start, end)


def to_come(tx: Tx, caller: Caller) -> list[Reservation]:
    """Returns those that are not over; projects that the caller cannot enter are not named."""
    known = set(identity.projects_of(tx, caller.user.id))
    return [
        one if caller.user.platform_admin or one.project_id in known else _unnamed(one)
        for one in reservations.to_come(tx)
    ]


def _unnamed(one: Reservation) -> Reservation:
    return Reservation(one.id, one.device, "", "", one.start, one.end)


def cancel(tx: Tx, caller: Caller, reservation_id: str) -> None:
    """The device is everybody's again."""
    if not reservations.remove(tx, reservation_id):
        raise NotFound(f"there is no reservation {reservation_id[:60]!r}: see `easel reservations ls`")
    tx.emit("device.reservation_cancelled", reservation_id, actor=caller.user.id)


def strangers(store: Store) -> tuple[dict[str, str], list[AttemptKey]]:
    """Devices that are kept now with their projects, and what others run there that said it may be stopped."""
    with store.read() as tx:
        kept = reservations.kept_now(tx)
        if not kept:
            return {}, []
        here = [
            row
            for row in queue_now.active(tx)
            if not row.give_way and kept.get(row.device or "", row.project_id) != row.project_id
        ]
        alone = sum(one.open for one in devices.machines(tx)) == 1
    # What has not begun goes back into its queue; on a pool of several devices it may wait for another one.
    found = [
        AttemptKey(row.id, row.attempt)
        for row in here
        if (may_be_stopped(row) if row.held_at is not None else alone)
    ]
    return kept, found

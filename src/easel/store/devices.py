"""Queries on the pool: which devices there are and how large they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, select, update

from easel.declare.resources import Room
from easel.records.attempt import AttemptKey
from easel.records.device import Device, Drain
from easel.store.engine import Tx
from easel.store.schema.jobs import devices, jobs
from easel.store.schema.shares import reservations
from easel.store.upsert import GivenRows, insert_or, is_in

ENGINES = ("ray", "slurm")


def seen(tx: Tx, name: str, executor: str, capacity: Room, notes: Mapping[str, str]) -> None:
    """A device is there, as large as it says."""
    values = {
        "executor": executor,
        "vcpu": capacity.vcpu,
        "memory_mb": capacity.memory_mb,
        "gpus": len(capacity.gpus),
        "notes": dict(notes),
        "connected": True,
        "seen_at": tx.now,
    }
    made = insert_or(tx, devices).values(name=name, **values)
    tx.execute(made.on_conflict_do_update(index_elements=["name"], set_=values))


def note(tx: Tx, name: str, notes: Mapping[str, str]) -> None:
    """Adds to what a device says of itself; an empty text takes a note away."""
    row = tx.execute(select(devices.c.notes).where(devices.c.name == name)).one_or_none()
    if row is None:
        return
    merged = {key: text for key, text in {**row.notes, **notes}.items() if text}
    if merged != row.notes:
        tx.execute(update(devices).where(devices.c.name == name).values(notes=merged))


def away(tx: Tx, name: str) -> None:
    tx.execute(update(devices).where(devices.c.name == name).values(connected=False, seen_at=tx.now))


def note_jobs(tx: Tx, places: Mapping[str, str]) -> None:
    """Write down on which device attempts run: `places` maps their keys. No part of their state changes."""
    rows: list[dict[str, Any]] = []
    for key, device in places.items():
        named = AttemptKey.parse(key)
        rows.append({"j": named.job_id, "a": named.attempt, "d": device})
    if rows:
        in_order = select(jobs.c.id).where(is_in(tx, jobs.c.id, sorted(row["j"] for row in rows)))
        tx.execute(in_order.order_by(jobs.c.id).with_for_update())
        new = GivenRows(tx, {"j": jobs.c.id, "a": jobs.c.attempt, "d": jobs.c.device}, rows)
        mine = (jobs.c.id == new["j"], jobs.c.attempt == new["a"])
        new.execute(update(jobs).where(*mine).values(device=new["d"]))


def set_drain(tx: Tx, name: str, drain: Drain | None) -> bool:
    """Whether there is such a device."""
    values = {
        "drain_since": drain.since if drain else None,
        "drain_by": drain.by if drain else None,
        "drain_reason": drain.reason if drain else None,
    }
    return tx.execute(update(devices).where(devices.c.name == name).values(**values)).rowcount == 1


def drained(tx: Tx) -> dict[str, Drain]:
    """The devices that get no more work."""
    query = select(devices).where(devices.c.drain_since.is_not(None))
    return {
        row.name: Drain(row.drain_since, row.drain_by, row.drain_reason or "") for row in tx.execute(query)
    }


_KEPT_FOR = (
    select(func.min(reservations.c.project_id))
    .where(
        reservations.c.device == devices.c.name,
        reservations.c.start_at <= bindparam("now"),
        reservations.c.end_at > bindparam("now"),
    )
    .scalar_subquery()
)
_ALL = select(devices, _KEPT_FOR.label("kept_for")).order_by(devices.c.name)


def list_devices(tx: Tx) -> list[Device]:
    return [
        Device(
            row.name,
            row.executor,
            Room(row.vcpu, row.memory_mb, (1.0,) * row.gpus),
            row.notes,
            row.connected,
            row.seen_at,
            None if row.drain_since is None else Drain(row.drain_since, row.drain_by, row.drain_reason or ""),
            row.kept_for,
        )
        for row in tx.execute(_ALL, {"now": tx.now})
    ]


def machines(tx: Tx) -> list[Device]:
    """Returns the devices without the workers that an engine placed: its machines, which are larger, stand for them."""
    return [
        device
        for device in list_devices(tx)
        if device.executor not in ENGINES or device.name.startswith(f"{device.executor}/")
    ]


def machines_are(tx: Tx, engine: str, rooms: Sequence[Room]) -> None:
    """What an engine's machines have, one device each."""
    for number, room in enumerate(rooms):
        seen(tx, f"{engine}/{number}", engine, room, {"machine of": engine})
    here = [f"{engine}/{number}" for number in range(len(rooms))]
    gone = devices.c.name.like(f"{engine}/%") & devices.c.name.not_in(here)
    tx.execute(update(devices).where(gone).values(connected=False))


def largest_connected(tx: Tx) -> Room | None:
    """Returns more than any one job can get now; None while no device is connected."""
    return _largest([device.capacity for device in machines(tx) if device.connected])


def largest(tx: Tx) -> Room | None:
    """Returns more than any one job can get; None while no device is known."""
    return _largest([device.capacity for device in machines(tx)])


def _largest(rooms: Sequence[Room]) -> Room | None:
    if not rooms:
        return None
    return Room(
        max(room.vcpu for room in rooms),
        max(room.memory_mb for room in rooms),
        max((room.gpus for room in rooms), key=len),
    )

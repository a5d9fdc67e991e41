"""Queries on devices that are kept for one project for a while."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from easel.ids import ProjectId, UserId
from easel.records.device import Reservation
from easel.store.engine import Tx
from easel.store.schema.identity import projects
from easel.store.schema.shares import reservations


def add(tx: Tx, device: str, project_id: ProjectId, start: datetime, end: datetime, by: UserId) -> str:
    """Returns its id."""
    made = tx.mint("rsv")
    values = {"id": made, "device": device, "project_id": project_id, "start_at": start, "end_at": end}
    tx.execute(insert(reservations).values(**values, made_by=by, made_at=tx.now))
    return made


_TO_COME = (
    select(reservations, projects.c.name)
    .join(projects, projects.c.id == reservations.c.project_id)
    .where(reservations.c.end_at > bindparam("now"))
    .order_by(reservations.c.start_at, reservations.c.id)
)


def to_come(tx: Tx) -> list[Reservation]:
    """Returns those that are not over, by when they begin."""
    return [
        Reservation(row.id, row.device, row.project_id, row.name, row.start_at, row.end_at)
        for row in tx.execute(_TO_COME, {"now": tx.now})
    ]


def remove(tx: Tx, reservation_id: str) -> bool:
    """Whether there was one."""
    return tx.execute(delete(reservations).where(reservations.c.id == reservation_id)).rowcount == 1


def remove_of(tx: Tx, device: str) -> int:
    """Removes the reservations of a device; returns how many there were."""
    return tx.execute(delete(reservations).where(reservations.c.device == device)).rowcount


def kept_now(tx: Tx) -> dict[str, str]:
    """Devices that are reserved at this moment, each with the project that it is kept for."""
    query = select(reservations.c.device, reservations.c.project_id).where(
        reservations.c.start_at <= tx.now, reservations.c.end_at > tx.now
    )
    return {row.device: row.project_id for row in tx.execute(query)}

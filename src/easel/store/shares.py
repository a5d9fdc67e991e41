"""Queries on shares of the pool: what was used, by which weights it counts, and what runs now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from easel.ids import ProjectId, UserId
from easel.records.queue import Owner
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, jobs
from easel.store.schema.shares import shares
from easel.store.upsert import insert_or

PROJECT = UserId("")
"""Stands for the project itself."""


@dataclass(frozen=True, slots=True)
class ShareAccount:
    """Usage in core-seconds as of `used_at`; weight and priority as an admin set them."""

    usage: float
    used_at: datetime
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class HeldNow:
    """One active job: what it asks for and since when it runs (None: it waits for a device)."""

    owner: Owner
    vcpu: float
    memory_mb: float
    gpus: float
    workers: int
    started_at: datetime | None
    trial: bool = False
    """Whether it is a trial of an app."""
    session: bool = False
    """Whether it is an interactive session, of which nobody knows when it ends."""


def accounts(tx: Tx) -> dict[Owner, ShareAccount]:
    return {
        (ProjectId(row.project_id), UserId(row.user_id)): ShareAccount(
            row.usage, row.used_at, row.weight, row.priority
        )
        for row in tx.execute(select(shares))
    }


def put(tx: Tx, changed: Mapping[Owner, ShareAccount]) -> None:
    """Stores these accounts as they are from now on."""
    if not changed:
        return
    made = insert_or(tx, shares)
    names = ("usage", "used_at", "weight", "priority")
    made = made.on_conflict_do_update(
        index_elements=["project_id", "user_id"], set_={name: made.excluded[name] for name in names}
    )
    tx.execute(
        made,
        [
            {
                "project_id": project,
                "user_id": user,
                "usage": account.usage,
                "used_at": account.used_at,
                "weight": account.weight,
                "priority": account.priority,
            }
            for (project, user), account in sorted(changed.items())
        ],
    )


def held_now(tx: Tx) -> list[HeldNow]:
    """Every active job."""
    asked = jobs.c.spec["resources"]
    query = select(
        jobs.c.project_id,
        jobs.c.user_id,
        asked["vcpu"].as_float().label("vcpu"),
        asked["memory_mb"].as_float().label("memory_mb"),
        asked["gpus"].as_float().label("gpus"),
        jobs.c.spec["workers"].as_integer().label("workers"),
        jobs.c.state,
        jobs.c.started_at,
        jobs.c.launched_at,
        jobs.c.kind,
        jobs.c.spec["port"].as_integer().label("port"),
    ).where(IS_ACTIVE)
    return [
        HeldNow(
            (ProjectId(row.project_id), UserId(row.user_id)),
            float(row.vcpu),
            float(row.memory_mb),
            float(row.gpus or 0.0),
            int(row.workers or 1),
            None if row.state == "launching" else row.started_at or row.launched_at,
            row.kind == "trial",
            row.port is not None,
        )
        for row in tx.execute(query)
    ]

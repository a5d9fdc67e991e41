"""Backups by a plan: when one is due, making it, and saying how it went."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from easel.errors import EaselError, InvalidInput, NotFound
from easel.flow.backup import Made, backup, prune
from easel.flow.lake.upload import Lake
from easel.ids import UserId
from easel.lake.place import Place
from easel.records.backup import BackupPlan, BackupRun
from easel.store import backups
from easel.store.engine import Store, Tx

EVERY = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
RETRY = timedelta(hours=1)
"""How long after a failure the next try comes, unless the plan says sooner."""


@dataclass(frozen=True, slots=True)
class Backing:
    """What a backup is made of, and how a place is opened."""

    lake: Lake
    secrets: Path
    open_place: Callable[[str], Place]


def set_plan(
    tx: Tx, target: str, every: timedelta, keep: int, open_place: Callable[[str], Place]
) -> BackupPlan:
    """Have backups made from now on. The place is written to and read first: a plan that cannot work is refused."""
    if every < timedelta(minutes=10):
        raise InvalidInput("backups are at least 10 minutes apart: --every hour")
    if keep < 1:
        raise InvalidInput("keep at least one backup: --keep 14")
    if not target.startswith("s3:") and not Path(target).is_absolute():
        raise InvalidInput(
            f"{target!r} is a relative path: give the whole one, the controller is started elsewhere"
        )
    _try_out(open_place(target))
    backups.set_plan(tx, target, every, keep)
    tx.emit("backup.planned", target, body={"every_s": every.total_seconds(), "keep": keep})
    made = backups.plan(tx)
    assert made is not None
    return made


def _try_out(place: Place) -> None:
    with tempfile.NamedTemporaryFile() as probe:
        try:
            place.put_file("easel-probe", Path(probe.name))
            place.delete("easel-probe")
        except OSError as error:
            raise InvalidInput(f"nothing can be written there: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class BackupStanding:
    """The plan, and the last that were made by it or another, the newest first."""

    plan: BackupPlan | None
    runs: Sequence[BackupRun]


def look(tx: Tx) -> BackupStanding:
    return BackupStanding(backups.plan(tx), backups.runs(tx))


def ask_for_one(tx: Tx, actor: UserId) -> None:
    """Have one made now, by the plan."""
    if not backups.ask(tx, True):
        raise NotFound(
            "there is no plan for backups: on the server's machine `easel backup --to … --every day`"
        )
    tx.emit("backup.asked", "backup", actor=actor, body={})


def is_due(plan: BackupPlan, runs: Sequence[BackupRun], now: datetime) -> bool:
    """Whether to make one now; `runs` are the newest first. One that failed is tried again after an hour."""
    if plan.asked:
        return True
    last = next((run for run in runs if run.target == plan.target), None)
    if last is None:
        return True
    if last.succeeded:
        return now - last.started_at >= plan.every
    return now - last.started_at >= min(plan.every, RETRY)


def back_up_if_due(store: Store, backing: Backing) -> Made | None:
    """Make one and prune, where it is due. How it went is written down; what failed is an event too."""
    with store.write() as tx:
        plan = backups.plan(tx)
        if plan is None or not is_due(plan, backups.runs(tx), tx.now):
            return None
        backups.ask(tx, False)
        run = backups.begin(tx, plan.target)
    try:
        place = backing.open_place(plan.target)
        made = backup(store, backing.lake.blobs, place, secrets=backing.secrets)
        prune(place, plan.keep, now=store.clock.now())
    except (EaselError, OSError) as error:
        said = error.message if isinstance(error, EaselError) else f"{error.strerror or error}"
        with store.write() as tx:
            backups.end(tx, run, error=said)
            tx.emit("backup.failed", plan.target, body={"reason": said})
        return None
    with store.write() as tx:
        backups.end(tx, run, name=made.name, rows=made.rows, blobs=made.blobs, damaged=made.damaged)
        body = {"name": made.name, "rows": made.rows, "blobs": made.blobs, "damaged": made.damaged}
        tx.emit("backup.made", plan.target, body=body)
    return made


def overdue(plan: BackupPlan | None, runs: Sequence[BackupRun], now: datetime) -> str | None:
    """What an admin should know about backups; None where all is well."""
    if plan is None:
        return "none is planned: `easel backup --to … --every day`"
    last = next((run for run in runs if run.target == plan.target), None)
    good = next((run for run in runs if run.target == plan.target and run.succeeded), None)
    if last is not None and last.error is not None:
        return f"the last one failed: {last.error}"
    since = good.started_at if good is not None else plan.since
    if now - since > 2 * plan.every:
        return f"none since {since:%Y-%m-%d %H:%M}: is a controller running?"
    if good is not None and good.damaged:
        return f"{good.damaged} damaged blobs were not copied: `easel doctor --deep`"
    return None

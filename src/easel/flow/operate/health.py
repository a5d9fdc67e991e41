"""What is wrong with this server now, in words: `/readyz`, `easel doctor` and the admin's page say the same."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from easel.errors import EaselError
from easel.flow.operate.backups import overdue
from easel.flow.operate.measure import CONTROLLER_LEASE
from easel.flow.words.numbers import duration
from easel.store import backups, devices, leases
from easel.store.engine import Store
from easel.store.migrate import SchemaFit, head, look_at_schema


class Severity(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Somebody should look; requests are served."""
    FAILED = "failed"
    """No requests should be sent here."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    severity: Severity
    detail: str


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the checks need to know of the process: where its home is, how much room there must be and is."""

    folder: Path
    least_free_bytes: int
    free_bytes: Callable[[Path], int]
    cordoned: str | None = None
    """Why this server takes no new requests; None while it does."""


def readiness(store: Store, around: ServerState) -> list[Check]:
    """Returns what decides whether this server should get requests."""
    checks = [_database(store), _disk(around)]
    if around.cordoned is not None:
        checks.append(
            Check("cordon", Severity.FAILED, f"this server is cordoned ({around.cordoned}): `easel uncordon`")
        )
    return checks


def health(store: Store, around: ServerState) -> list[Check]:
    """Returns `readiness` and what an admin should look at though requests are served."""
    checks = readiness(store, around)
    if checks[0].severity is Severity.OK:
        checks += [_controller(store), _pool(store), _backups(store)]
    return checks


def _database(store: Store) -> Check:
    try:
        found, fit = look_at_schema(store)
    except EaselError as error:
        return Check("database", Severity.FAILED, error.message)
    match fit:
        case SchemaFit.CURRENT:
            return Check("database", Severity.OK, f"answers, schema {found}")
        case SchemaFit.NEWER:
            return Check(
                "database",
                Severity.OK,
                f"answers; a newer release has added to it (schema {found}, this release has {head()}): "
                "upgrade this server too",
            )
        case SchemaFit.TOO_NEW:
            return Check(
                "database",
                Severity.FAILED,
                f"the database has schema {found}, which this release (schema {head()}) cannot use: upgrade it",
            )
        case SchemaFit.OLDER:
            return Check(
                "database",
                Severity.FAILED,
                f"the database is being upgraded: it has schema {found or 'none'}, this release wants {head()}",
            )


def _disk(around: ServerState) -> Check:
    free = around.free_bytes(around.folder)
    if free < around.least_free_bytes:
        return Check(
            "disk",
            Severity.FAILED,
            f"the disk under {around.folder.name} has {free / 1e6:.0f} MB left: make room",
        )
    return Check("disk", Severity.OK, f"{free / 1e9:.1f} GB free")


def _backups(store: Store) -> Check:
    with store.read() as tx:
        plan, runs, now = backups.plan(tx), backups.runs(tx), tx.now
    wrong = overdue(plan, runs, now)
    if wrong is not None:
        return Check("backups", Severity.WARNING, wrong)
    made = next((run for run in runs if run.succeeded), None)
    told = (
        "the first is still to come" if made is None else f"the last at {made.started_at:%Y-%m-%d %H:%M} UTC"
    )
    return Check("backups", Severity.OK, told)


def _controller(store: Store) -> Check:
    with store.read() as tx:
        lease = leases.stand(tx, CONTROLLER_LEASE)
        now = tx.now
    if lease is None:
        return Check("controller", Severity.WARNING, "none has run yet: `easel up`, or `easel controller`")
    if lease[2] <= now:
        silent = duration((now - lease[2]).total_seconds())
        return Check(
            "controller",
            Severity.WARNING,
            f"none acts since {silent}: no job is started. Start one with `easel controller`",
        )
    return Check("controller", Severity.OK, f"{lease[0].partition(':')[0]} acts")


def _pool(store: Store) -> Check:
    with store.read() as tx:
        pool = devices.machines(tx)
    away = [device.name for device in pool if not device.connected]
    if not pool:
        return Check("devices", Severity.WARNING, "none has connected yet: docs/how-to/workers.md")
    if away:
        named = ", ".join(away[:5]) + (" …" if len(away) > 5 else "")
        told = (
            f"{len(away)} of {len(pool)} away: {named}; `easel devices --remove NAME` if one is gone for good"
        )
        return Check("devices", Severity.WARNING, told)
    return Check("devices", Severity.OK, f"{len(pool)} connected")

"""What is wrong with an installation beside its bytes, as `easel doctor` looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from easel.errors import EaselError
from easel.flow.backup import unfinished_in
from easel.flow.operate.backups import overdue
from easel.flow.operate.health import Check, Severity
from easel.flow.words.numbers import duration
from easel.lake.place import Place
from easel.records.device import Device
from easel.store import backups, devices, events, identity
from easel.store.engine import Store
from easel.store.identity import LapsedToken

CLOCK_LEEWAY = timedelta(seconds=30)
DEAD_AFTER = timedelta(days=1)
"""A backup without a manifest that was begun so long ago is not being made any more."""
MISSED_FOR = timedelta(days=14)
"""A token that was used until it expired, so lately, is probably missed by a program."""


def examine_installation(
    store: Store, folder: Path, least_free_bytes: int, free_bytes: int, open_place: Callable[[str], Place]
) -> Iterator[Check]:
    """Yields what was looked at: disk, file modes, clock, workers, backups and tokens."""
    yield check_disk(free_bytes, least_free_bytes)
    yield check_modes(folder)
    with store.read() as tx:
        now, newest = tx.now, events.newest_at(tx)
        pool = devices.machines(tx)
        plan, runs = backups.plan(tx), backups.runs(tx)
        lapsed = identity.lapsed_tokens(tx, now - MISSED_FOR)
    yield check_clock(now, newest)
    yield check_workers(pool, now)
    wrong = overdue(plan, runs, now)
    if plan is None:
        yield Check("backups", Severity.WARNING, wrong or "none is planned")
    else:
        yield Check("backups", Severity.OK if wrong is None else Severity.FAILED, wrong or "as planned")
        yield _dead_backups(plan.target, now, open_place)
    yield check_tokens(lapsed)


def check_disk(free: int, least: int) -> Check:
    """Twice what the server needs to take requests should be there."""
    told = f"{free / 1e9:.1f} GB free"
    if free < 2 * least:
        return Check(
            "disk", Severity.FAILED, f"{told}, {least / 1e6:.0f} MB are needed: `easel gc`, `easel storage`"
        )
    return Check("disk", Severity.OK, told)


def check_modes(folder: Path) -> Check:
    """Keys and tokens are their owner's alone, and the home around the database and the bytes is."""
    kept = [folder, *(path for name in KEYS for path in folder.glob(name))]
    open_ones = [path for path in kept if path.stat().st_mode & 0o077]
    if open_ones:
        named = ", ".join(str(path) for path in open_ones[:5])
        return Check("file modes", Severity.FAILED, f"others can read {named}: `easel doctor --fix`")
    return Check("file modes", Severity.OK, "private")


KEYS = ("*.key", "run/*.token", "secrets")
PRIVATE = (*KEYS, "easel.sqlite*", "blobs")
"""What of a home nobody else may read: `--fix` closes all of it."""


def check_clock(now: datetime, newest: datetime | None) -> Check:
    """Compare this machine's clock with the newest event, which cannot have happened later than now."""
    if newest is not None and newest > now + CLOCK_LEEWAY:
        ahead = duration((newest - now).total_seconds())
        return Check(
            "clock",
            Severity.FAILED,
            f"the newest event is {ahead} in the future: this machine's clock, or a server's, is wrong (chrony, ntp)",
        )
    return Check("clock", Severity.OK, "agrees with the history")


def check_workers(pool: Sequence[Device], now: datetime) -> Check:
    lost = [device for device in pool if not device.connected]
    if lost:
        named = ", ".join(
            f"{each.name} (since {duration((now - each.seen_at).total_seconds())})" for each in lost[:5]
        )
        told = (
            f"{len(lost)} of {len(pool)} lost: {named}. Start their workers again (`easel worker`), or remove those "
            "that are gone for good (`easel devices --remove NAME`)"
        )
        return Check("workers", Severity.FAILED, told)
    return Check("workers", Severity.OK, f"{len(pool)} known, none lost")


def check_tokens(lapsed: Sequence[LapsedToken]) -> Check:
    """Names tokens that were in use until they expired: whoever used them gets nothing but refusals now."""
    if lapsed:
        named = ", ".join(
            f"{each.name} of {each.user} (expired {each.expired:%Y-%m-%d})" for each in lapsed[:5]
        )
        told = f"{len(lapsed)} were used until they expired: {named}. Issue new ones, or revoke them"
        return Check("tokens", Severity.FAILED, told)
    return Check("tokens", Severity.OK, "none that was in use has expired")


def _dead_backups(target: str, now: datetime, open_place: Callable[[str], Place]) -> Check:
    try:
        dead = unfinished_in(open_place(target), now - DEAD_AFTER)
    except (EaselError, OSError) as error:
        return Check("unfinished backups", Severity.FAILED, f"{target} cannot be read: {error}")
    if dead:
        told = f"{', '.join(dead[:5])} in {target} were never finished; the next backup removes them"
        return Check("unfinished backups", Severity.FAILED, told)
    return Check("unfinished backups", Severity.OK, "none")

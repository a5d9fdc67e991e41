"""When waiting jobs are expected to start: the queue as it is, with each job's own spread of runtimes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from easel.declare.resources import Resources
from easel.flow.jobs.shares import usage_now, with_shares
from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line, Owner
from easel.run.calibrate import LEVELS, Correction, Forecast
from easel.run.forecast import (
    ExpectedStart,
    ForecastDevice,
    QueueNow,
    RunningJob,
    Spread,
    WaitingJob,
    expected_starts,
)
from easel.run.share import HALF_LIFE_S
from easel.store import devices, job_queues, pool_shares, queue_now, reservations, shares
from easel.store.engine import Tx
from easel.store.queue_now import JobInQueue, TookSeconds
from easel.tenancy.places import speed_of

UNKNOWN = Spread(60.0, 1.0, 1.0)
"""Of a job of which nothing is known, on a pool that has finished nothing."""
STRANGE_SD, FEW_SD, LEAST_SD = 1.0, 0.5, 0.1
"""Least deviations of the logarithm: of jobs never seen before, seen once or twice, seen often."""
MOST_NAMES = 200
DRIFT_SD = 0.08
"""By how much a machine is faster or slower than it was: a deviation of the logarithm, the same for all jobs."""
MOST_GAP_S = 10.0


@dataclass(frozen=True, slots=True)
class ExpectedTimes:
    """When a job probably starts (median), and by when it has started and ended with 90 % probability.

    None where it never does on the devices that are connected.
    """

    start: datetime | None
    start_by: datetime | None
    end_by: datetime | None


def queue_as_it_is(tx: Tx, max_active: int, half_life_s: float = HALF_LIFE_S) -> QueueNow:
    """Devices that are connected, what runs on them, what waits, and everybody's claim."""
    kept = reservations.kept_now(tx)
    known_devices = devices.machines(tx)
    speeds = {device.name: speed_of(device) for device in known_devices}
    pool = [
        ForecastDevice(
            device.name, device.capacity, device.labels, kept.get(device.name), speeds[device.name]
        )
        for device in known_devices
        if device.open
    ]
    active, queued = queue_now.active(tx), queue_now.queued(tx)
    spreads = _Spreads(tx, [*active, *queued], speeds)
    running, waiting = [], []
    for row in active:
        if row.state == "launching":
            waiting.append(_waiting(row, spreads, tx.now, launched=True))
        else:
            since = row.held_at or row.started_at or row.launched_at or tx.now
            elapsed = max((tx.now - since).total_seconds(), 0.0)
            elsewhere = pool[0].name if pool else ""
            place = next((device.name for device in pool if device.name == row.device), elsewhere)
            trial = row.spec["run"]["kind"] == "trial"
            running.append(RunningJob(_owner(row), place, _asked(row.spec), spreads.of(row), elapsed, trial))
    waiting += [_waiting(row, spreads, tx.now, launched=False) for row in queued]
    owners = {_owner(row) for row in (*active, *queued)}
    lines = job_queues.settings_of(tx, owners, max_active)
    held = shares.held_now(tx)
    typical = spreads.lately.median
    usage, known = usage_now(tx, held, typical, half_life_s)
    weighed = with_shares(lines, usage, known, typical)
    gap = typical_gap(
        [(row.device, row.launched_at, row.held_at, row.ended_at) for row in queue_now.last_held(tx)]
    )
    by_owner = {line.owner: line for line in weighed}
    return QueueNow(pool, running, waiting, by_owner, gap, DRIFT_SD, pool_shares.least(tx))


def typical_gap(held: Sequence[tuple[str | None, datetime, datetime, datetime]]) -> float:
    """The median of the seconds from when a job could have its place, being let through and somebody else's end on that
    device, until it held it; `held` has device, let through, held and ended."""
    ends: dict[str | None, list[datetime]] = {}
    for device, _, _, ended in held:
        ends.setdefault(device, []).append(ended)
    gaps = []
    for device, launched, since, _ in held:
        before = max((end for end in ends[device] if end <= since), default=launched)
        gaps.append((since - max(before, launched)).total_seconds())
    return float(np.clip(np.median(gaps), 0.0, MOST_GAP_S)) if gaps else 0.0


def line_of(tx: Tx, now: QueueNow, owner: Owner, max_active: int) -> Mapping[Owner, Line]:
    """The lines with that of `owner`, who may have nothing in the queue yet."""
    if owner in now.lines:
        return now.lines
    (line,) = job_queues.settings_of(tx, {owner}, max_active)
    usage, known = usage_now(tx, [], 0.0, HALF_LIFE_S)
    return {**now.lines, **{each.owner: each for each in with_shares([line], usage, known, 60.0)}}


def forecast_of(expected: ExpectedStart) -> Forecast:
    """The middle of its start and end, and its end at each level that is promised."""
    ends = {name: expected.end_at(level) for name, level in LEVELS.items()}
    return Forecast(expected.start_at(0.5), expected.end_at(0.5), ends)


def expected_times(
    tx: Tx,
    job_ids: Sequence[JobId],
    max_active: int,
    rng: np.random.Generator,
    half_life_s: float = HALF_LIFE_S,
    learned: Correction = Correction(),  # noqa: B008 - frozen
) -> dict[JobId, ExpectedTimes]:
    """Returns when each of these jobs that waits will probably start and end, corrected as earlier ones taught."""
    found = expected_starts(queue_as_it_is(tx, max_active, half_life_s), rng)

    def moment(seconds: float) -> datetime | None:
        return tx.now + timedelta(seconds=seconds) if math.isfinite(seconds) else None

    def times(expected: ExpectedStart) -> ExpectedTimes:
        told = learned.applied(forecast_of(expected))
        by = max(expected.start_at(0.9) * math.exp(learned.start), told.start)
        return ExpectedTimes(moment(told.start), moment(by), moment(told.ends["end_90"]))

    return {job: times(found[job]) for job in job_ids if job in found}


class _Spreads:
    """How long jobs take on a device of speed 1: as promised, as the last ones of their name took, or as any took
    lately, each told by the speed of the device where it ran."""

    def __init__(self, tx: Tx, rows: Sequence[JobInQueue], speeds: Mapping[str, float]) -> None:
        def seconds(found: Sequence[TookSeconds]) -> list[float]:
            return [one.seconds * speeds.get(one.device or "", 1.0) for one in found]

        self._promised = queue_now.promises(tx, [row.id for row in rows])
        names = list(dict.fromkeys((row.project_id, row.name) for row in rows))[:MOST_NAMES]
        self._of_name = {name: seconds(queue_now.took(tx, *name)) for name in names}
        self.lately = spread_of(seconds(queue_now.took_lately(tx)), "", STRANGE_SD) or UNKNOWN

    def of(self, row: JobInQueue) -> Spread:
        promise = self._promised.get(row.id)
        if promise is not None:
            low, high = max(promise.low_seconds, 1e-3), max(promise.high_seconds, 1e-3)
            return Spread(promise.promised_seconds, math.log(max(high / low, 1.0)) / (2 * 1.645))
        name = (row.project_id, row.name)
        group = f"{row.project_id}/{row.name}"
        known = spread_of(self._of_name.get(name, []), group)
        return known or Spread(self.lately.median, FEW_SD, self.lately.sd, group)


def spread_of(seconds: Sequence[float], group: str, least: float | None = None) -> Spread | None:
    """How long the next job of a `group` takes of which some took so many `seconds`; None where none is known."""
    if not seconds:
        return None
    logs = np.log(np.maximum(seconds, 0.05))
    floor = least if least is not None else (FEW_SD if len(logs) < 3 else LEAST_SD)
    sd = max(float(logs.std(ddof=1)) if len(logs) > 1 else floor, floor)
    # the mean is itself uncertain, for all jobs of the name alike
    return Spread(float(np.exp(logs.mean())), sd, sd / math.sqrt(len(logs)), group)


def _owner(row: JobInQueue) -> Owner:
    return ProjectId(row.project_id), UserId(row.user_id)


def _asked(spec: Mapping[str, Any]) -> Resources:
    return Resources(**spec["resources"])


def _waiting(row: JobInQueue, spreads: _Spreads, now: datetime, launched: bool) -> WaitingJob:
    since = (row.launched_at if launched else row.submitted_at) or now
    return WaitingJob(
        JobId(row.id),
        _owner(row),
        _asked(row.spec),
        spreads.of(row),
        row.spec.get("wants") or {},
        int(row.spec.get("workers") or 1),
        max((now - since).total_seconds(), 0.0) if launched else 0.0,
        launched,
        row.spec["run"]["kind"] == "trial",
    )

"""Somebody with a better claim waits: jobs that said they may be preempted are stopped, slices give way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from easel.declare.resources import Resources
from easel.flow.jobs.shares import usage_now, with_shares
from easel.ids import JobId, ProjectId, UserId
from easel.records.attempt import AttemptKey
from easel.records.queue import Owner
from easel.run.preempt import Claimant, ContendedDevice, PreemptibleJob, preempted
from easel.store import (
    devices,
    job_attempts,
    job_placements,
    job_queues,
    jobs,
    queue_now,
    reservations,
    shares,
)
from easel.store.devices import ENGINES
from easel.store.engine import Store, Tx
from easel.store.queue_now import JobInQueue
from easel.store.stored_job import StoredJob

UNKNOWN_JOB_S = 60.0
KnownJob = JobInQueue | StoredJob


def preempting(
    store: Store, max_active: int, half_life_s: float, leaving: Collection[str] = ()
) -> list[AttemptKey]:
    """Attempts to stop now; `leaving` were asked to stop already. Nothing where an engine places the work."""
    with store.read() as tx:
        active = queue_now.active(tx)
        running = [(row, row.held_at) for row in active if row.held_at is not None]
        if not any(may_be_stopped(row) for row, _ in running):
            return []
        pool = [one for one in devices.machines(tx) if one.open]
        if any(one.executor in ENGINES for one in pool):
            return []
        launching = [row for row in active if row.held_at is None]
        waiting: Sequence[KnownJob] = launching[:1] or _heads(tx, max_active)
        if not waiting:
            return []
        # what only waits for a device has used nothing yet: it would stand in its own way
        kept = reservations.kept_now(tx)
        held = [one for one in shares.held_now(tx) if one.started_at is not None]
        typical = job_attempts.typical_seconds(tx) or UNKNOWN_JOB_S
        usage, known = usage_now(tx, held, typical, half_life_s)
        owners = {_owner(row) for row in active} | {_owner(row) for row in waiting}
        lines = with_shares(job_queues.settings_of(tx, owners, max_active), usage, known, typical)
        claimants = [
            Claimant(
                _owner(row),
                _asked(row),
                (tx.now - row.submitted_at).total_seconds(),
                row.spec.get("wants") or {},
            )
            for row in waiting
            if int(row.spec.get("workers") or 1) == 1
        ]
        holders = [
            PreemptibleJob(
                _key(row),
                _owner(row),
                row.device or "",
                _asked(row),
                (tx.now - held_at).total_seconds(),
                may_be_stopped(row),
                _key(row) in leaving or bool(row.give_way),
            )
            for row, held_at in running
        ]
    places = [ContendedDevice(one.name, one.capacity, one.labels, kept.get(one.name)) for one in pool]
    found = preempted(claimants, holders, places, {line.owner: line for line in lines})
    return [AttemptKey.parse(key) for key in found]


def preempt(tx: Tx, found: Collection[AttemptKey]) -> frozenset[str]:
    """Notes it, asks slices to stop at their next checkpoint, and returns the keys of those to be stopped."""
    rows = jobs.rows(tx, [key.job_id for key in found])
    stop = set()
    for key in found:
        row = rows.get(key.job_id)
        if row is None or row.attempt != key.attempt:
            continue
        if row.kind == "trial":
            asked = job_placements.ask_to_give_way(tx, [JobId(row.id)])
            kind = "job.asked_to_give_way"
        else:
            asked, kind = [JobId(row.id)], "job.preempted"
            stop.add(str(key))
        if asked:
            project, user = _owner(row)
            tx.emit(kind, row.id, project_id=project, actor=user, body={"attempt": key.attempt})
    return frozenset(stop)


def _heads(tx: Tx, max_active: int) -> list[StoredJob]:
    """The first job of each queue that may let one through."""
    first = [line.waiting[0] for line in job_queues.lines(tx, max_active, 1) if line.waiting]
    rows = jobs.rows(tx, first)
    return [rows[job] for job in first if job in rows]


def may_be_stopped(row: KnownJob) -> bool:
    """A job that said so, or a slice of a trial; a distributed job would stop on every device at once."""
    spec: Mapping[str, Any] = row.spec
    if int(spec.get("workers") or 1) > 1:
        return False
    sliced = spec["run"]["kind"] == "trial" and "until" in spec["run"].get("arguments", {})
    return sliced or bool(spec.get("preemptible"))


def _key(row: KnownJob) -> str:
    return str(AttemptKey(row.id, row.attempt))


def _owner(row: KnownJob) -> Owner:
    return ProjectId(row.project_id), UserId(row.user_id)


def _asked(row: KnownJob) -> Resources:
    return Resources(**row.spec["resources"])

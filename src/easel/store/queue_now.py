"""Queries on everything that holds or waits for a device, and on how long such jobs took before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, func, select

from easel.declare.resources import Resources
from easel.ids import JobId, ProjectId, UserId
from easel.records.job import JobState
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, jobs
from easel.store.schema.price import provisions


class JobInQueue(NamedTuple):
    """What a queue knows of a job that waits in it, or has left it and not ended."""

    id: JobId
    project_id: ProjectId
    user_id: UserId
    name: str
    spec: Mapping[str, Any]
    attempt: int
    give_way: bool
    state: str
    device: str | None
    submitted_at: datetime
    launched_at: datetime | None
    held_at: datetime | None
    started_at: datetime | None


class JobOnDevice(NamedTuple):
    """Where an active job is, whether it was asked to stop at its next checkpoint, what each of its workers asks for,
    whether it said that it may be stopped and tried again, and whether it is being killed."""

    state: JobState
    device: str | None
    gives_way: bool
    resources: Resources
    workers: int = 1
    preemptible: bool = False
    ending: bool = False


class PromisedSeconds(NamedTuple):
    """How long a job that was provisioned is expected to take, with a 90 % interval."""

    job_id: str
    promised_seconds: float
    low_seconds: float
    high_seconds: float


class TookSeconds(NamedTuple):
    """For how long a job that finished held its device."""

    device: str | None
    seconds: float


class HeldPlace(NamedTuple):
    """Which device a job held, since when and until when; when it had left its queue."""

    device: str | None
    launched_at: datetime
    held_at: datetime
    ended_at: datetime


_COLUMNS = tuple(jobs.c[name] for name in JobInQueue._fields)
_HELD_AT = func.coalesce(jobs.c.held_at, jobs.c.started_at)


def active(tx: Tx) -> list[JobInQueue]:
    """Returns the jobs that have left their queues, in that order."""
    query = select(*_COLUMNS).where(IS_ACTIVE).order_by(jobs.c.launched_at, jobs.c.seq)
    return [JobInQueue._make(row) for row in tx.execute(query)]


def launching(tx: Tx) -> list[JobInQueue]:
    """Returns the jobs that have left their queues and that no device has begun."""
    query = select(*_COLUMNS).where(IS_ACTIVE, jobs.c.state == JobState.LAUNCHING.value)
    return [JobInQueue._make(row) for row in tx.execute(query.order_by(jobs.c.launched_at, jobs.c.seq))]


_HELD = select(
    jobs.c.id,
    jobs.c.state,
    jobs.c.device,
    jobs.c.give_way,
    jobs.c.spec["resources"]["vcpu"].as_float().label("vcpu"),
    jobs.c.spec["resources"]["memory_mb"].as_float().label("memory_mb"),
    jobs.c.spec["resources"]["gpus"].as_float().label("gpus"),
    jobs.c.spec["workers"].as_integer().label("workers"),
    jobs.c.spec["preemptible"].as_boolean().label("preemptible"),
    jobs.c.kill_requested,
).where(IS_ACTIVE)


def held(tx: Tx) -> dict[JobId, JobOnDevice]:
    """Returns what jobs that have left their queues hold, or wait to hold, and where."""
    return {
        JobId(row.id): JobOnDevice(
            JobState(row.state),
            row.device,
            bool(row.give_way),
            Resources(float(row.vcpu), int(row.memory_mb), float(row.gpus or 0.0)),
            int(row.workers or 1),
            bool(row.preemptible),
            bool(row.kill_requested),
        )
        for row in tx.execute(_HELD)
    }


def waiting(tx: Tx, at_most: int) -> int:
    """How many jobs wait in a queue and could start, as far as `at_most`."""
    some = select(jobs.c.seq).where(IS_QUEUED, jobs.c.blocked == 0).limit(at_most)
    return int(tx.execute(select(func.count()).select_from(some.subquery())).scalar_one())


def queued(tx: Tx, limit: int = 2000) -> list[JobInQueue]:
    """Returns the jobs that wait in a queue and could start, each owner's in its order."""
    query = select(*_COLUMNS).where(IS_QUEUED, jobs.c.blocked == 0)
    found = tx.execute(query.order_by(jobs.c.rank, jobs.c.seq).limit(limit))
    return [JobInQueue._make(row) for row in found]


def promises(tx: Tx, job_ids: Iterable[str]) -> dict[str, PromisedSeconds]:
    """Returns the expected seconds of those of these jobs that were provisioned."""
    query = select(*(provisions.c[name] for name in PromisedSeconds._fields))
    found = tx.execute(query.where(provisions.c.job_id.in_(list(job_ids))))
    return {row.job_id: PromisedSeconds._make(row) for row in found}


_TOOK = select(jobs.c.device, _HELD_AT.label("held_at"), jobs.c.ended_at).where(jobs.c.state == "finished")
_TOOK = _TOOK.order_by(jobs.c.seq.desc())


def took(tx: Tx, project_id: str, name: str, among: int = 20) -> list[TookSeconds]:
    """Returns for how many seconds the last jobs of this name that finished held their devices."""
    of_name = and_(jobs.c.project_id == project_id, jobs.c.name == name)
    return _seconds(tx, _TOOK.where(of_name).limit(among))


def took_lately(tx: Tx, among: int = 50) -> list[TookSeconds]:
    """Returns for how many seconds the last jobs of anybody that finished held their devices."""
    return _seconds(tx, _TOOK.limit(among))


def _seconds(tx: Tx, query: object) -> list[TookSeconds]:
    rows = tx.execute(query)  # type: ignore[arg-type]  # a select of a device and two moments
    return [
        TookSeconds(row.device, (row.ended_at - row.held_at).total_seconds())
        for row in rows
        if row.held_at and row.ended_at
    ]


def last_held(tx: Tx, among: int = 100) -> list[HeldPlace]:
    """Returns what the last jobs that finished held."""
    query = select(*(jobs.c[name] for name in HeldPlace._fields)).where(
        jobs.c.state == "finished", jobs.c.held_at.is_not(None), jobs.c.launched_at.is_not(None)
    )
    return [HeldPlace._make(row) for row in tx.execute(query.order_by(jobs.c.seq.desc()).limit(among))]

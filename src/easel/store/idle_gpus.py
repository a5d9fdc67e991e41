"""Queries on GPUs that jobs hold and hardly use, by the series that their agents keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, select

from easel.records.job import GPU_IDLE
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, job_attempts, job_series, jobs
from easel.store.schema.price import bill_lines

GPUS_EACH = func.coalesce(jobs.c.spec["resources"]["gpus"].as_float(), 0.0)
"""What a job asks for on one device."""
GPUS = GPUS_EACH * func.coalesce(jobs.c.spec["workers"].as_integer(), 1)
_IDLE_S = func.coalesce(job_series.c.last, 0.0)


def _series_of(job: ColumnElement[str], attempt: ColumnElement[int]) -> ColumnElement[bool]:
    return and_(job_series.c.job_id == job, job_series.c.attempt == attempt, job_series.c.name == GPU_IDLE)


@dataclass(frozen=True, slots=True)
class IdleCharge:
    """What one person's jobs in one project, as far as they are billed, held idle, and what that came to."""

    project_id: str
    user_id: str
    jobs: int
    hours: float
    idle_gpu_hours: float
    held_gpu_hours: float
    micros: int
    currency: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.project_id, self.user_id, self.currency


def billed(tx: Tx, month: str) -> list[IdleCharge]:
    """Returns sums by project and person over attempts that held GPUs: each has its idle share of its bill."""
    held_s = job_attempts.c.seconds * GPUS_EACH
    share = case((_IDLE_S <= 0, 0.0), (held_s > _IDLE_S, _IDLE_S / held_s), else_=1.0)
    gpu_seconds = bill_lines.c.seconds * GPUS
    query = (
        select(
            bill_lines.c.project_id,
            bill_lines.c.user_id,
            func.count(func.distinct(case((_IDLE_S > 0, bill_lines.c.job_id)))).label("jobs"),
            func.sum(bill_lines.c.seconds * share).label("seconds"),
            func.sum(gpu_seconds * share).label("idle_s"),
            func.sum(gpu_seconds).label("held_s"),
            func.sum(bill_lines.c.micros * share).label("micros"),
            bill_lines.c.currency,
        )
        .join(jobs, jobs.c.id == bill_lines.c.job_id)
        .join(
            job_attempts,
            and_(
                job_attempts.c.job_id == bill_lines.c.job_id, job_attempts.c.attempt == bill_lines.c.attempt
            ),
        )
        .join(job_series, _series_of(bill_lines.c.job_id, bill_lines.c.attempt), isouter=True)
        .where(bill_lines.c.month == month, GPUS > 0)
        .group_by(bill_lines.c.project_id, bill_lines.c.user_id, bill_lines.c.currency)
    )
    return [
        IdleCharge(
            row.project_id,
            row.user_id,
            int(row.jobs),
            float(row.seconds) / 3600,
            float(row.idle_s) / 3600,
            float(row.held_s) / 3600,
            round(row.micros),
            row.currency,
        )
        for row in tx.execute(query)
    ]


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """A job that holds GPUs now: since when, and for how many GPU-seconds each device's were idle since."""

    job_id: str
    name: str
    project_id: str
    user_id: str
    device: str | None
    since: datetime
    spec: Mapping[str, Any]
    gpus: float
    gpus_each: float
    idle_s: float

    def idle_share(self, now: datetime) -> float:
        """Which part of the time so far its GPUs were idle."""
        held_s = (now - self.since).total_seconds() * self.gpus_each
        return min(1.0, self.idle_s / held_s) if held_s > 0 else 0.0


def held_now(tx: Tx) -> list[HeldGpus]:
    """Returns the jobs that hold GPUs now, longest first."""
    query = (
        select(
            jobs.c.id,
            jobs.c.name,
            jobs.c.project_id,
            jobs.c.user_id,
            jobs.c.device,
            jobs.c.held_at,
            jobs.c.spec,
            GPUS,
            GPUS_EACH,
            _IDLE_S,
        )
        .join(job_series, _series_of(jobs.c.id, jobs.c.attempt), isouter=True)
        .where(IS_ACTIVE, jobs.c.held_at.is_not(None), GPUS > 0)
        .order_by(jobs.c.held_at)
    )
    return [HeldGpus(*row) for row in tx.execute(query)]

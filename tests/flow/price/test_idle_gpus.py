"""GPUs that were held idle: the part of each bill, by project and person, and jobs that still run."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.flow.jobs.reports import metric_row
from easel.flow.price.chargeback import ChargeLine, as_csv, as_pdf
from easel.flow.price.idle_gpus import idle_charges, idle_now
from easel.ids import JobId
from easel.records.job import GPU_IDLE
from easel.store import job_attempts, job_series, jobs
from easel.store.billing import add_lines
from easel.store.engine import Store, Tx
from easel.store.identity import add_project, add_user
from easel.store.job_attempts import EndedAttempt
from easel.store.schema.jobs import jobs as table

HOUR = timedelta(hours=1)


class Pool:
    """Jobs of one project that hold GPUs: written down as the engine would."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx
        self.project = add_project(tx, "astro", "")
        self.people = {name: add_user(tx, name, home=self.project.id) for name in ("ana", "ben")}

    def job(self, name: str, user: str, gpus: float, workers: int = 1) -> str:
        spec = JobSpec(name, Command(("true",)), resources=Resources(1, 256, gpus), workers=workers)
        jobs.add(self.tx, [jobs.NewJob(JobId(name), self.project.id, self.people[user].id, spec)])
        return name

    def idle(self, job: str, attempt: int, seconds: float) -> None:
        """What its agent says last of its idle GPU-seconds, after an earlier word."""
        row = jobs.rows(self.tx, [job])[job]
        points = [(1, seconds / 2), (60, seconds)]
        job_series.add_metrics(
            self.tx, [metric_row(row, attempt, self.tx.now, GPU_IDLE, step, value) for step, value in points]
        )

    def ended(self, job: str, user: str, attempt: int, hours: float) -> None:
        """An attempt that held its GPUs and was billed 2 EUR an hour."""
        now, seconds = self.tx.now, hours * 3600
        told: Any = ("finished", None, None, 0, 0)
        held = now - hours * HOUR
        job_attempts.add(self.tx, [EndedAttempt(job, attempt, "box", held, held, now, seconds, *told)])
        line = {"job_id": job, "attempt": attempt, "line": 0, "project_id": self.project.id, "app": ""}
        line |= {"user_id": self.people[user].id, "month": month_of(now), "start": held, "seconds": seconds}
        bill = {"per_hour": 2.0, "micros": round(2e6 * hours), "currency": "EUR", "book": "lab"}
        add_lines(self.tx, [line | bill])

    def runs(self, job: str, since: datetime) -> None:
        held = {"state": "running", "device": "box", "held_at": since, "attempt": 1}
        self.tx.execute(update(table).where(table.c.id == job).values(**held))


def month_of(moment: datetime) -> str:
    return f"{moment:%Y-%m}"


def test_each_attempt_is_charged_for_the_part_in_which_its_gpus_were_idle(store: Store) -> None:
    with store.write() as tx:
        pool = Pool(tx)
        pool.job("half", "ana", 2.0)
        pool.ended("half", "ana", 1, 1.0)  # a first attempt that used them
        pool.idle("half", 1, 0.0)
        pool.ended("half", "ana", 2, 1.0)
        pool.idle("half", 2, 3600.0)  # of two GPU-hours one
        pool.job("unknown", "ana", 1.0)
        pool.ended("unknown", "ana", 1, 5.0)  # nobody measured it
        pool.job("whole", "ben", 0.5, workers=2)
        pool.ended("whole", "ben", 1, 4.0)
        pool.idle("whole", 1, 9e9)  # never more than there was
        pool.ended(pool.job("cores", "ben", 0.0), "ben", 1, 1.0)
        month = month_of(tx.now)
        assert idle_charges(tx, month) == [
            ChargeLine("astro", "ben", 1, 4.0, 4.0, 8.0, "EUR", 4.0, 0),
            ChargeLine("astro", "ana", 1, 0.5, 1.0, 1.0, "EUR", 9.0, 0),
        ]
        assert idle_charges(tx, "2020-01") == []
        assert idle_now(tx) == []


def test_a_job_that_still_runs_is_told_with_what_it_came_to_so_far(store: Store) -> None:
    with store.write() as tx:
        pool = Pool(tx)
        since = max(tx.now - 2 * HOUR, tx.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0))
        seconds = (tx.now - since).total_seconds()
        for name, part in (("sleeps", 0.75), ("works", 0.0)):
            pool.runs(pool.job(name, "ana", 1.0), since)
            pool.idle(name, 1, seconds * part)
        (one,) = idle_now(tx)
        (line,) = idle_charges(tx, month_of(tx.now))
    assert (one.job, one.project, one.user, one.device, one.gpus) == ("sleeps", "astro", "ana", "box", 1.0)
    assert one.held_gpu_hours == pytest.approx(seconds / 3600)
    assert one.idle_gpu_hours == pytest.approx(0.75 * seconds / 3600)
    assert (line.jobs, line.running_jobs) == (1, 1)
    assert line.gpu_hours == pytest.approx(one.idle_gpu_hours)
    assert line.held_gpu_hours == pytest.approx(2 * one.held_gpu_hours)
    assert line.amount == pytest.approx(one.amount, abs=1e-6)
    assert line.amount > 0
    assert (line.currency, one.currency) == ("USD", "USD")


def test_the_report_is_a_file_too() -> None:
    lines = [ChargeLine("astro", "ana", 2, 0.5, 1.0, 2.0, "EUR", 9.0, 1)]
    (row,) = csv.DictReader(io.StringIO(as_csv(lines, idle_gpus=True)))
    assert (row["GPU-hours"], row["held GPU-hours"], row["running jobs"]) == ("1.0000", "9.0000", "1")
    assert as_pdf(lines, "2026-03", idle_gpus=True).startswith(b"%PDF-")

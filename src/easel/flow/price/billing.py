"""Attempts that are over become bills: each once, for the seconds that its own journal tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from easel.flow.jobs.shares import charge, core_seconds
from easel.flow.prices import draw_bill, price_history
from easel.ids import ProjectId, UserId
from easel.price.bill import Bill, spread_over_days
from easel.records.identity import Caller
from easel.records.job import Job
from easel.records.queue import Owner
from easel.run.share import HALF_LIFE_S
from easel.store import billing, identity, job_attempts, jobs, profiles
from easel.store.billing import KeptLine
from easel.store.billing import Total as Total
from easel.store.engine import Tx
from easel.store.job_attempts import UnbilledAttempt
from easel.store.profiles import Promise

_FIRST_DAY = date(1970, 1, 1)


def bill_of(tx: Tx, caller: Caller, job_id: str) -> tuple[Job, Sequence[KeptLine], Promise | None]:
    """Returns a job, the lines of its bill, and what it was promised to take and cost where it was."""
    job = jobs.find(tx, caller.project_id, job_id)
    lines = billing.lines_of(tx, caller.project_id, job_id)
    return job, lines, profiles.promise_of(tx, caller.project_id, job_id)


def totals(tx: Tx, by: str, month: str | None, project_id: ProjectId | None = None) -> list[Total]:
    """Returns sums by user, project, month, app or job, the dearest first; people and projects by their names.

    By day: in the order of the days, in UTC; what ran over midnight is shared out.
    """
    if by == "day":
        return _by_day(tx, month, project_id)
    found = billing.totals(tx, by, project_id=project_id, month=month)
    names: dict[str, str] = {}
    if by == "user":
        names = identity.names_of(tx, [total.group for total in found])
    if by == "project":
        each = [(total.group, identity.find_project(tx, ProjectId(total.group))) for total in found]
        names = {group: project.name for group, project in each if project}
    return [replace(total, group=names.get(total.group, total.group)) for total in found]


def _by_day(tx: Tx, month: str | None, project_id: ProjectId | None) -> list[Total]:
    sums: dict[tuple[str, str], Total] = {}

    def add(day: date, jobs_there: int, seconds: float, micros: int, currency: str) -> None:
        key = (day.isoformat(), currency)
        old = sums.get(key, Total(key[0], 0, 0.0, 0, currency))
        sums[key] = Total(key[0], old.jobs + jobs_there, old.seconds + seconds, old.micros + micros, currency)

    for whole in billing.totals_of_days(tx, project_id, month):
        day = _FIRST_DAY + timedelta(days=int(whole.group))
        add(day, whole.jobs, whole.seconds, whole.micros, whole.currency)
    over = billing.lines_over_midnight(tx, project_id, month)
    counted = billing.days_of_jobs(tx, project_id, month, sorted({job for job, _ in over}))
    for job, line in over:
        for day, seconds, micros in spread_over_days(line.start, line.seconds, line.micros):
            there = (job, (day - _FIRST_DAY).days, line.currency)
            add(day, int(there not in counted), seconds, micros, line.currency)
            counted.add(there)
    return [sums[key] for key in sorted(sums)]


def anything_to_bill(tx: Tx) -> bool:
    """Asked of a reader, so that a quiet ledger writes nothing."""
    return job_attempts.anything_unbilled(tx)


def bill_ended(tx: Tx, limit: int = 500, half_life_s: float = HALF_LIFE_S) -> int:
    """Draw up the bills of attempts that ended since the last call; returns how many there were.

    A device is held from the attempt's first sign of life on it (`downloading` or `running`) until its last entry; of
    a lost one until the last thing known of it. Waiting in the queue and for room on a device is not billed, nor is the
    time until anybody read the journal.
    """
    ended = job_attempts.unbilled(tx, limit)
    if not ended:
        return 0
    prices = price_history(tx)
    lines: list[dict[str, Any]] = []
    used: dict[Owner, float] = {}
    for row in ended:
        until = row.held_at + timedelta(seconds=row.seconds)
        lines += _lines(row, draw_bill(row.spec, row.held_at, until, prices))
        owner = (ProjectId(row.project_id), UserId(row.user_id))
        used[owner] = used.get(owner, 0.0) + core_seconds(row.spec, row.seconds)
    billing.add_lines(tx, lines)
    charge(tx, used, half_life_s)
    job_attempts.mark_billed(tx, [row.seq for row in ended])
    return len(ended)


def _lines(row: UnbilledAttempt, bill: Bill) -> list[dict[str, Any]]:
    app = row.spec["tags"].get("app", "")
    return [
        {
            "job_id": row.job_id,
            "attempt": row.attempt,
            "line": number,
            "project_id": row.project_id,
            "user_id": row.user_id,
            "app": str(app)[:100],
            "month": line.month,
            "start": line.start,
            "seconds": line.seconds,
            "per_hour": line.per_hour,
            "micros": line.micros,
            "currency": bill.currency,
            "book": line.book,
        }
        for number, line in enumerate(bill.lines)
    ]

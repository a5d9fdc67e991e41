"""Queries on prices, bills and budgets. Amounts are millionths of the currency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    bindparam,
    cast,
    delete,
    func,
    insert,
    select,
    type_coerce,
    update,
)

from easel.ids import ProjectId
from easel.store.engine import Tx
from easel.store.schema.jobs import IS_ACTIVE, jobs
from easel.store.schema.price import bill_lines, budgets, prices
from easel.store.upsert import chunks, insert_or


def price_history(tx: Tx) -> list[tuple[datetime, Mapping[str, Any]]]:
    """Every book with the moment from which it holds, oldest first."""
    rows = tx.execute(select(prices.c.since, prices.c.book).order_by(prices.c.since, prices.c.seq))
    return [(row.since, row.book) for row in rows]


def add_price(tx: Tx, since: datetime, book: Mapping[str, Any], actor: str) -> None:
    tx.execute(insert(prices).values(since=since, book=dict(book), actor=actor))


# Devices that are held now. ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A job that holds a device, and since when."""

    job_id: str
    since: datetime
    spec: Mapping[str, Any]


def held(tx: Tx, project_id: ProjectId | None = None) -> list[HeldDevice]:
    """Returns the jobs that hold a device, longest first."""
    query = select(jobs.c.id, jobs.c.held_at, jobs.c.spec)
    query = query.where(IS_ACTIVE, jobs.c.held_at.is_not(None)).order_by(jobs.c.held_at)
    if project_id is not None:
        query = query.where(jobs.c.project_id == project_id)
    return [HeldDevice(*row) for row in tx.execute(query)]


def launching(tx: Tx, project_id: ProjectId) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the jobs of a project that were given to a device and hold none yet, with what they ask for."""
    query = select(jobs.c.id, jobs.c.spec).where(
        IS_ACTIVE, jobs.c.held_at.is_(None), jobs.c.project_id == project_id
    )
    return [(row.id, row.spec) for row in tx.execute(query.order_by(jobs.c.seq))]


# Bills. ------------------------------------------------------------------------------------------------------


def add_lines(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        tx.execute(insert(bill_lines), [dict(row) for row in rows])


@dataclass(frozen=True, slots=True)
class KeptLine:
    """One line of a bill, as it was drawn up."""

    start: datetime
    seconds: float
    per_hour: float
    micros: int
    currency: str
    book: str


_LINE = select(*(bill_lines.c[one.name] for one in fields(KeptLine)))


def lines_of(tx: Tx, project_id: ProjectId, job_id: str) -> list[KeptLine]:
    """Returns the lines of a job's bill, in the order of its attempts."""
    query = _LINE.where(bill_lines.c.project_id == project_id, bill_lines.c.job_id == job_id)
    return [KeptLine(*row) for row in tx.execute(query.order_by(bill_lines.c.attempt, bill_lines.c.line))]


@dataclass(frozen=True, slots=True)
class Total:
    """What one group came to."""

    group: str
    jobs: int
    seconds: float
    micros: int
    currency: str


GROUPS = {
    "user": bill_lines.c.user_id,
    "month": bill_lines.c.month,
    "app": bill_lines.c.app,
    "job": bill_lines.c.job_id,
    "project": bill_lines.c.project_id,
}


def totals(
    tx: Tx, by: str, *, project_id: ProjectId | None = None, month: str | None = None, limit: int = 1000
) -> list[Total]:
    """Sums by one of `GROUPS`, the dearest first. Without a project: of the whole installation."""
    group, amount = GROUPS[by], func.sum(bill_lines.c.micros)
    query = select(
        group.label("name"),
        func.count(func.distinct(bill_lines.c.job_id)).label("jobs"),
        func.sum(bill_lines.c.seconds).label("seconds"),
        amount.label("micros"),
        bill_lines.c.currency,
    ).group_by(group, bill_lines.c.currency)
    query = query.where(*_there(project_id, month))
    rows = tx.execute(query.order_by(amount.desc(), group).limit(limit))
    return [
        Total(str(row.name), int(row.jobs), float(row.seconds), int(row.micros), row.currency) for row in rows
    ]


_DAY = 86_400 * 1_000_000
_DAY_OF_START = type_coerce(bill_lines.c.start, BigInteger) // _DAY
_DAY_OF_END = (
    type_coerce(bill_lines.c.start, BigInteger) + cast(bill_lines.c.seconds * 1_000_000, BigInteger)
) // _DAY


def totals_of_days(tx: Tx, project_id: ProjectId | None, month: str | None) -> list[Total]:
    """Returns sums by day (in UTC) of the lines that lie within one; the days as numbers since 1970."""
    query = select(
        _DAY_OF_START.label("name"),
        func.count(func.distinct(bill_lines.c.job_id)).label("jobs"),
        func.sum(bill_lines.c.seconds).label("seconds"),
        func.sum(bill_lines.c.micros).label("micros"),
        bill_lines.c.currency,
    ).where(*_there(project_id, month), _DAY_OF_START == _DAY_OF_END)
    rows = tx.execute(query.group_by(_DAY_OF_START, bill_lines.c.currency))
    return [
        Total(str(row.name), int(row.jobs), float(row.seconds), int(row.micros), row.currency) for row in rows
    ]


def lines_over_midnight(
    tx: Tx, project_id: ProjectId | None, month: str | None
) -> list[tuple[str, KeptLine]]:
    """Returns the lines that touch more than one day, each with its job."""
    query = _LINE.where(*_there(project_id, month), _DAY_OF_START != _DAY_OF_END)
    found = tx.execute(query.add_columns(bill_lines.c.job_id)).all()
    return [(row[-1], KeptLine(*row[:-1])) for row in found]


def days_of_jobs(
    tx: Tx, project_id: ProjectId | None, month: str | None, jobs_there: Sequence[str]
) -> set[tuple[str, int, str]]:
    """Returns on which days, and in which currency, these jobs have lines that lie within one: as `totals_of_days`
    counts them."""
    query = select(bill_lines.c.job_id, _DAY_OF_START.label("day"), bill_lines.c.currency).distinct()
    query = query.where(*_there(project_id, month), _DAY_OF_START == _DAY_OF_END)
    found = set[tuple[str, int, str]]()
    for some in chunks(jobs_there):
        rows = tx.execute(query.where(bill_lines.c.job_id.in_(some)))
        found |= {(row.job_id, int(row.day), row.currency) for row in rows}
    return found


def _there(project_id: ProjectId | None, month: str | None) -> list[ColumnElement[bool]]:
    of = [] if project_id is None else [bill_lines.c.project_id == project_id]
    return of if month is None else [*of, bill_lines.c.month == month]


def billed_micros(tx: Tx, project_id: ProjectId, month: str | None) -> int:
    """All that the project was billed, in one month or ever."""
    query = select(func.coalesce(func.sum(bill_lines.c.micros), 0))
    query = query.where(bill_lines.c.project_id == project_id)
    if month is not None:
        query = query.where(bill_lines.c.month == month)
    return int(tx.execute(query).scalar_one())


def lines_after(tx: Tx, project_id: ProjectId, moment: datetime) -> list[KeptLine]:
    """Returns the lines that reach beyond a moment, and some that end shortly before it.

    No line crosses a month's end.
    """
    month = moment.astimezone(UTC).strftime("%Y-%m")
    here = (bill_lines.c.project_id == project_id, bill_lines.c.month >= month)
    longest = tx.execute(select(func.max(bill_lines.c.seconds)).where(*here)).scalar() or 0.0
    query = _LINE.where(*here, bill_lines.c.start > moment - timedelta(seconds=longest))
    return [KeptLine(*row) for row in tx.execute(query)]


# Budgets. ----------------------------------------------------------------------------------------------------


def put_budget(tx: Tx, project_id: ProjectId, values: Mapping[str, Any]) -> None:
    """Set or change; what was announced before is announced anew against the new limit."""
    kept = {**values, "warned_in": "", "warned": []}
    made = insert_or(tx, budgets).values(project_id=project_id, **kept)
    tx.execute(made.on_conflict_do_update(index_elements=["project_id"], set_=kept))


def drop_budget(tx: Tx, project_id: ProjectId) -> None:
    tx.execute(delete(budgets).where(budgets.c.project_id == project_id))


@dataclass(frozen=True, slots=True)
class KeptBudget:
    """A project's budget, and the shares of it that were announced in the period `warned_in`."""

    project_id: ProjectId
    limit_micros: int
    period: str
    warn_at: Sequence[float]
    hard_stop: bool
    warned_in: str
    warned: Sequence[float]


_BUDGETS = select(*(budgets.c[one.name] for one in fields(KeptBudget)))
_BUDGET = _BUDGETS.where(budgets.c.project_id == bindparam("of_project"))
_ALL_BUDGETS = _BUDGETS.order_by(budgets.c.project_id)


def find_budget(tx: Tx, project_id: ProjectId) -> KeptBudget | None:
    """Returns the budget of a project, or None."""
    row = tx.execute(_BUDGET, {"of_project": project_id}).one_or_none()
    return None if row is None else KeptBudget(*row)


def all_budgets(tx: Tx) -> list[KeptBudget]:
    """Returns the budgets of all projects that have one."""
    return [KeptBudget(*row) for row in tx.execute(_ALL_BUDGETS)]


def remember_warned(tx: Tx, project_id: ProjectId, period: str, shares: Sequence[float]) -> None:
    values = {"warned_in": period, "warned": list(shares)}
    tx.execute(update(budgets).where(budgets.c.project_id == project_id).values(**values))


# Reports for a month. ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Charge:
    """What one person's jobs in one project came to."""

    project_id: str
    user_id: str
    jobs: int
    hours: float
    gpu_hours: float
    micros: int
    currency: str


_GPUS = func.coalesce(jobs.c.spec["resources"]["gpus"].as_float(), 0.0) * func.coalesce(
    jobs.c.spec["workers"].as_integer(), 1
)


def charges(tx: Tx, month: str) -> list[Charge]:
    """Returns sums by project and person."""
    query = select(
        bill_lines.c.project_id,
        bill_lines.c.user_id,
        func.count(func.distinct(bill_lines.c.job_id)).label("jobs"),
        func.sum(bill_lines.c.seconds).label("seconds"),
        func.sum(bill_lines.c.seconds * func.coalesce(_GPUS, 0.0)).label("gpu_seconds"),
        func.sum(bill_lines.c.micros).label("micros"),
        bill_lines.c.currency,
    ).join(jobs, jobs.c.id == bill_lines.c.job_id, isouter=True)
    query = query.where(bill_lines.c.month == month)
    query = query.group_by(bill_lines.c.project_id, bill_lines.c.user_id, bill_lines.c.currency)
    return [
        Charge(
            row.project_id,
            row.user_id,
            int(row.jobs),
            float(row.seconds) / 3600,
            float(row.gpu_seconds) / 3600,
            int(row.micros),
            row.currency,
        )
        for row in tx.execute(query.order_by(func.sum(bill_lines.c.micros).desc(), bill_lines.c.user_id))
    ]

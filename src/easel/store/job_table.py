"""Queries on jobs as rows of a table: with their tags, which hold what they measured, and what they were billed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, not_, select

from easel.declare.page import PageRequest
from easel.errors import InvalidInput
from easel.ids import ProjectId
from easel.lake.access import EVERYTHING, Rights
from easel.records.job import Job
from easel.records.lake import Kind
from easel.store.engine import Tx
from easel.store.jobs import JOB_COLUMNS, JOBS, job_of
from easel.store.lake.hidden_jobs import hidden
from easel.store.lake.search import sort_column
from easel.store.paging import Page, conditions, fetch
from easel.store.schema.jobs import jobs
from easel.store.schema.lake import tags
from easel.store.schema.price import bill_lines

COST = "cost"
_FAR = "from "


@dataclass(frozen=True, slots=True)
class Billed:
    """What a job was billed so far, in millionths of the currency."""

    micros: int
    currency: str


@dataclass(frozen=True, slots=True)
class CataloguedJob:
    """A job and its number in the lake's catalogue, by which its tags are found."""

    job: Job
    artifact_id: int | None


def page(
    tx: Tx,
    project_id: ProjectId,
    request: PageRequest,
    among: Select[*tuple[Any, ...]] | None = None,
    rights: Rights = EVERYTHING,
) -> Page[CataloguedJob]:
    """Sorted by a column of jobs, by `cost`, or by a tag; those without it come last. `among` are artifacts' ids;
    jobs that `rights` hide are left out."""
    query: Select[*tuple[Any, ...]] = select(*JOB_COLUMNS, jobs.c.artifact_id)
    query = query.where(jobs.c.project_id == project_id)
    if among is not None:
        query = query.where(jobs.c.artifact_id.in_(among))
    if rights is not EVERYTHING:
        query = query.where(not_(hidden(rights)))
    key = request.sort.removeprefix("-")
    if key == "" or key in JOBS.columns:
        return fetch(tx, query, JOBS, request).map(lambda row: CataloguedJob(job_of(row), row.artifact_id))
    query, by = _by_cost(query) if key == COST else _by_tag(tx, query, project_id, key)
    query = query.where(*conditions(JOBS, request.filters))
    order = by.desc() if request.sort.startswith("-") else by.asc()
    start = _offset(request.cursor)
    found = tx.execute(
        query.order_by(by.is_(None), order, jobs.c.seq.desc()).offset(start).limit(request.limit + 1)
    ).all()
    rows = [CataloguedJob(job_of(row), row.artifact_id) for row in found[: request.limit]]
    more = len(found) > request.limit
    return Page(rows, f"{_FAR}{start + request.limit}" if more else None)


def billed(tx: Tx, job_ids: Sequence[str]) -> dict[str, Billed]:
    """What each of these jobs was billed; nothing for one without a bill."""
    query = select(bill_lines.c.job_id, func.sum(bill_lines.c.micros), func.max(bill_lines.c.currency))
    query = query.where(bill_lines.c.job_id.in_(job_ids)).group_by(bill_lines.c.job_id)
    return {job: Billed(int(micros), currency) for job, micros, currency in tx.execute(query)}


def _by_cost(query: Select[*tuple[Any, ...]]) -> tuple[Select[*tuple[Any, ...]], ColumnElement[Any]]:
    sums = (
        select(bill_lines.c.job_id, func.sum(bill_lines.c.micros).label("micros"))
        .group_by(bill_lines.c.job_id)
        .subquery("sums")
    )
    return query.outerjoin(sums, sums.c.job_id == jobs.c.id), sums.c.micros


def _by_tag(
    tx: Tx, query: Select[*tuple[Any, ...]], project_id: ProjectId, key: str
) -> tuple[Select[*tuple[Any, ...]], ColumnElement[Any]]:
    column = tags.c[sort_column(tx, project_id, Kind.JOB, key)]
    return query.outerjoin(tags, (tags.c.artifact_id == jobs.c.artifact_id) & (tags.c.key == key)), column


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    number = cursor.removeprefix(_FAR)
    if not (cursor.startswith(_FAR) and number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInput("the cursor is of another list: begin without one")
    return int(number)

"""Searches over runs as SQL: each comparison asks an index, and a page by a metric is read from its index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, case, exists, func, literal, or_, select

from easel.ids import ProjectId
from easel.records.run import RunRecord
from easel.store.engine import AnyRow, Tx
from easel.store.lake.tags import SHORT
from easel.store.runs import PARAM, RUN_COLUMNS, run_of, tag_key
from easel.store.schema.jobs import job_series, jobs
from easel.store.schema.lake import tags
from easel.store.schema.tracking import run_datasets

Condition = ColumnElement[bool]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class View(Enum):
    ACTIVE = auto()
    DELETED = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class RunTerm:
    """One comparison. `of` is metric, parameter, tag, dataset, or the name of a column of jobs."""

    of: str
    key: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class RunOrder:
    of: str
    key: str
    descending: bool


@dataclass(frozen=True, slots=True)
class RunSearch:
    experiments: Sequence[int]
    view: View = View.ACTIVE
    terms: Sequence[RunTerm] = ()
    order: Sequence[RunOrder] = ()
    offset: int = 0
    limit: int = 1000


Columns = Sequence[ColumnElement[Any]]
SortKey = tuple[ColumnElement[Any], bool]
"""What a page is sorted by, and whether the largest comes first."""


def search(tx: Tx, project_id: ProjectId, request: RunSearch) -> list[RunRecord]:
    """A page of runs, at most `limit` of them."""
    return [run_of(row) for row in rows(tx, project_id, request, RUN_COLUMNS)]


def rows(tx: Tx, project_id: ProjectId, request: RunSearch, columns: Columns) -> Sequence[AnyRow]:
    """The same with the columns that the caller wants."""
    if request.order and request.order[0].of == "metric":
        found = _by_metric(tx, project_id, request, columns)
        if found is not None:
            return found
    query = _base(tx, project_id, request)
    order: list[SortKey] = []
    for number, key in enumerate(request.order):
        query, by = _joined(tx, query, key, number)
        order += by
    return _page(tx, query, order, request, columns)


def _by_metric(
    tx: Tx, project_id: ProjectId, request: RunSearch, columns: Columns
) -> Sequence[AnyRow] | None:
    """The page, if runs that have the metric fill it: they are read in the order of its index."""
    first = request.order[0]
    query = _base(tx, project_id, request).join(
        job_series,
        and_(*_series_of_run(job_series, project_id, first.key), job_series.c.last.is_not(None)),
    )
    order: list[SortKey] = [(job_series.c.last, first.descending)]
    for number, key in enumerate(request.order[1:]):
        query, more = _joined(tx, query, key, number)
        order += more
    found = _page(tx, query, order, request, columns)
    return found if len(found) == request.limit else None


def _page(
    tx: Tx, query: Select[*tuple[Any, ...]], order: Sequence[SortKey], request: RunSearch, columns: Columns
) -> Sequence[AnyRow]:
    """The page is found in the indexes alone; what else is told of a run is read for those on it."""
    keys = [*order, *_usual(request.order)]
    query = query.add_columns(*(by.label(f"by_{number}") for number, (by, _) in enumerate(keys)))
    found = query.order_by(*(_sorted(by, down) for by, down in keys))
    page = found.offset(request.offset).limit(request.limit).subquery("page")
    whole = select(*columns).select_from(page.join(jobs, jobs.c.id == page.c.id))
    again = (_sorted(page.c[f"by_{number}"], down) for number, (_, down) in enumerate(keys))
    with tx.planned_anew():
        return tx.execute(whole.order_by(*again)).all()


def _sorted(by: ColumnElement[Any], descending: bool) -> ColumnElement[Any]:
    return by.desc() if descending else by.asc()


def _usual(order: Sequence[RunOrder]) -> list[SortKey]:
    named = {key.key for key in order if key.of == "attribute"}
    usual: list[SortKey] = [] if "submitted_at" in named else [(jobs.c.submitted_at, True)]
    return usual if "id" in named else [*usual, (jobs.c.id, False)]


def _base(tx: Tx, project_id: ProjectId, request: RunSearch) -> Select[*tuple[Any, ...]]:
    query: Select[*tuple[Any, ...]] = select(jobs.c.id).where(jobs.c.project_id == project_id)
    if len(request.experiments) == 1:
        query = query.where(jobs.c.experiment == request.experiments[0])
    else:
        query = query.where(jobs.c.experiment.in_(request.experiments))
    if request.view is View.ACTIVE:
        query = query.where(jobs.c.deleted_at.is_(None))
    elif request.view is View.DELETED:
        query = query.where(jobs.c.deleted_at.is_not(None))
    for number, term in enumerate(request.terms):
        joined = _beside(tx, project_id, term, number)
        query = query.where(_condition(tx, project_id, term)) if joined is None else query.join(*joined)
    return query


def _beside(tx: Tx, project_id: ProjectId, term: RunTerm, number: int) -> tuple[FromClause, Condition] | None:
    """Returns the one row beside the run that fulfils the term, to be joined by the number of the run's artifact: so
    the indexes of several terms are joined with each other before any run is read."""
    if term.of == "metric":
        series = job_series.alias(f"of_{number}")
        return series, and_(
            *_series_of_run(series, project_id, term.key),
            _COMPARE[term.operator](series.c.last, term.value),
        )
    if term.of in ("parameter", "tag") and term.operator != "IS NULL":
        given = tags.alias(f"of_{number}")
        told = () if term.operator == "IS NOT NULL" else (_tag_condition(tx, given, term),)
        return given, and_(*_tag_of_run(given, project_id, term), *told)
    return None


def _series_of_run(series: FromClause, project_id: ProjectId, name: str) -> tuple[Condition, ...]:
    return (
        series.c.artifact_id == jobs.c.artifact_id,
        series.c.attempt == jobs.c.attempt,
        series.c.project_id == project_id,
        series.c.name == name,
    )


def _tag_of_run(given: FromClause, project_id: ProjectId, term: RunTerm) -> tuple[Condition, ...]:
    return (
        given.c.artifact_id == jobs.c.artifact_id,
        given.c.project_id == project_id,
        given.c.kind == literal("job"),
        given.c.key == (PARAM + term.key if term.of == "parameter" else tag_key(term.key)),
    )


def _condition(tx: Tx, project_id: ProjectId, term: RunTerm) -> Condition:
    if term.of in ("parameter", "tag"):  # without the tag: with one it is joined
        return ~_some(*_tag_of_run(tags, project_id, term))
    if term.of == "dataset":
        column = run_datasets.c[term.key]
        return _some(
            run_datasets.c.job_id == jobs.c.id,
            run_datasets.c.project_id == project_id,
            textual(tx, column, term.operator, term.value),
        )
    if term.key == "artifact_uri":
        address = literal("mlflow-artifacts:/").concat(jobs.c.experiment).concat("/").concat(jobs.c.id)
        return textual(tx, address.concat("/artifacts"), term.operator, term.value)
    column = jobs.c[term.key]
    if term.operator in ("<", "<=", ">", ">=") or not isinstance(term.value, str | tuple):
        return _COMPARE[term.operator](column, term.value)  # type: ignore[no-any-return]
    return textual(tx, column, term.operator, term.value)


def _some(*conditions: Condition) -> Condition:
    """Returns the condition that there is a row beside the run that fulfils all of them."""
    return exists(select(literal(1)).where(*conditions).correlate(jobs))


def _tag_condition(tx: Tx, given: FromClause, term: RunTerm) -> Condition:
    text = str(term.value)
    if term.operator == "=":
        if len(text) > SHORT:
            return and_(given.c.text == text[:SHORT], given.c.whole == text)
        if len(text) < SHORT:  # of a longer one the text has this length: the index alone answers
            return given.c.text == text
        return and_(given.c.text == text, given.c.whole.is_(None))
    return textual(tx, func.coalesce(given.c.whole, given.c.text), term.operator, text)


def textual(tx: Tx, column: ColumnElement[Any], how: str, value: Any) -> Condition:
    """A comparison of text as MLflow means it: LIKE heeds case, ILIKE does not."""
    match how:
        case "LIKE":
            if tx.conn.dialect.name == "sqlite":  # whose LIKE does not heed case; GLOB does
                return column.op("GLOB")(_glob(value))
            return column.like(value)
        case "ILIKE":
            return func.lower(column).like(value.lower())
        case "IN":
            return column.in_(value)
        case "NOT IN":
            return column.not_in(value)
    return _COMPARE[how](column, value)  # type: ignore[no-any-return]


def _glob(pattern: str) -> str:
    return "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)


def _joined(
    tx: Tx, query: Select[*tuple[Any, ...]], key: RunOrder, number: int
) -> tuple[Select[*tuple[Any, ...]], list[SortKey]]:
    """The query with what it is sorted by; runs without it come last."""
    by: ColumnElement[Any]
    absent: ColumnElement[Any]
    if key.of == "metric":
        series = job_series.alias(f"by_{number}")
        query = query.outerjoin(
            series,
            and_(series.c.job_id == jobs.c.id, series.c.attempt == jobs.c.attempt, series.c.name == key.key),
        )
        by = series.c.last
        absent = case((series.c.last_text == "nan", 1), (by.is_(None), 2), else_=0)
    elif key.of in ("parameter", "tag"):
        given = tags.alias(f"by_{number}")
        name = PARAM + key.key if key.of == "parameter" else tag_key(key.key)
        query = query.outerjoin(given, and_(given.c.artifact_id == jobs.c.artifact_id, given.c.key == name))
        by = given.c.text
        absent = case((or_(by.is_(None)), 1), else_=0)
    else:
        by = jobs.c[key.key]
        if key.key in ("submitted_at", "id", "name", "state"):
            return query, [(by, key.descending)]
        absent = case((by.is_(None), 1), else_=0)
    return query, [(absent, False), (by, key.descending)]


def ids_in_experiment(tx: Tx, project_id: ProjectId, number: int) -> list[str]:
    query = select(jobs.c.id).where(jobs.c.project_id == project_id, jobs.c.experiment == number)
    return list(tx.execute(query).scalars())

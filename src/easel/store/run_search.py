"""Searches over runs as SQL: each comparison asks an index, and a page by a metric is read from its index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Float,
    FromClause,
    Select,
    String,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
)

from easel.ids import ProjectId
from easel.lake.access import EVERYTHING, Rights
from easel.records.run import RunRecord
from easel.store.engine import AnyRow, Tx
from easel.store.lake.hidden_jobs import hidden
from easel.store.lake.tags import SHORT
from easel.store.runs import PARAM, RUN_COLUMNS, run_of, tag_key
from easel.store.schema.jobs import job_series, jobs
from easel.store.schema.lake import tags
from easel.store.schema.metadata import Moment
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
    offset: Any = 0
    limit: Any = 1000
    rights: Rights = EVERYTHING
    """Of whoever asks: runs that a grant hides from them are not there."""


Columns = Sequence[ColumnElement[Any]]
SortKey = tuple[ColumnElement[Any], bool]
"""What a page is sorted by, and whether the largest comes first."""


class WrittenRun(NamedTuple):
    """A run's id, and the JSON that the database wrote of it; None where it must be written from its records."""

    id: str
    written: str | None


def records(tx: Tx, project_id: ProjectId, request: RunSearch) -> list[RunRecord]:
    """Returns a page of runs, at most `limit` of them."""
    found: Sequence[AnyRow] = ()
    if _is_by_metric(request):
        found = tx.execute(_statement(_of(tx), project_id, request, RUN_COLUMNS, by_metric=True)).all()
    if len(found) != request.limit:
        found = tx.execute(_statement(_of(tx), project_id, request, RUN_COLUMNS)).all()
    return [run_of(row) for row in found]


def texts(tx: Tx, project_id: ProjectId, request: RunSearch, columns: Columns) -> list[WrittenRun]:
    """Returns the same of PostgreSQL; `columns` are a run's id and its JSON.

    A search like an earlier one finds its statement written: building it anew would take longer than most answers.
    """
    shape, values = _shaped(request)
    values["project"] = project_id

    def ask(by_metric: bool) -> Sequence[AnyRow]:
        sql, given = _written(tx.conn.dialect, shape, columns, by_metric)
        return tx.conn.exec_driver_sql(sql, {**given, **values}).all()

    with tx.planned_anew():
        if _is_by_metric(request):
            found = ask(by_metric=True)
            if len(found) == request.limit:
                return [WrittenRun._make(row) for row in found]
        return [WrittenRun._make(row) for row in ask(by_metric=False)]


@dataclass(frozen=True, slots=True)
class _Slot:
    """Stands in a statement for a value that comes when it is run."""

    name: str
    kind: type[float | int | str]


_KINDS: dict[type, Any] = {float: Float(53), int: BigInteger(), str: String()}


def _given(value: Any) -> Any:
    return (
        bindparam(value.name, type_=_KINDS[value.kind], required=False) if isinstance(value, _Slot) else value
    )


def _shaped(request: RunSearch) -> tuple[RunSearch, dict[str, Any]]:
    """Returns the search with slots in place of its values where the statement is the same for all of them, and the
    values. Lists and long texts stay: what is asked depends on them."""
    values: dict[str, Any] = {"offset": request.offset, "limit": request.limit}
    terms = []
    for number, term in enumerate(request.terms):
        value = term.value
        if isinstance(value, datetime):
            value = Moment.whole_microseconds(value)
        if isinstance(value, float | int) or (isinstance(value, str) and len(value) < SHORT):
            slot = _Slot(f"value_{number}", type(value))
            values[slot.name] = (
                value.lower() if term.operator == "ILIKE" and isinstance(value, str) else value
            )
            term = replace(term, value=slot)
        terms.append(term)
    return (
        replace(
            request,
            experiments=tuple(request.experiments),
            terms=tuple(terms),
            order=tuple(request.order),
            offset=_Slot("offset", int),
            limit=_Slot("limit", int),
        ),
        values,
    )


@lru_cache(maxsize=500)
def _written(
    dialect: Dialect, shape: RunSearch, columns: Columns, by_metric: bool
) -> tuple[str, Mapping[str, Any]]:
    """Returns the text of a statement, and the values in it that all searches of its shape have."""
    statement = _statement(dialect.name, _Slot("project", str), shape, columns, by_metric=by_metric)
    found = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    return str(found), found.params


def _of(tx: Tx) -> str:
    return tx.conn.dialect.name


def _is_by_metric(request: RunSearch) -> bool:
    return bool(request.order) and request.order[0].of == "metric"


def _statement(
    dialect: str, project_id: Any, request: RunSearch, columns: Columns, *, by_metric: bool = False
) -> Select[*tuple[Any, ...]]:
    """Returns the statement that finds a page. With `by_metric` only runs that have the metric by which they are sorted
    are found, in the order of its index: it is the page if they fill it."""
    query = _base(dialect, project_id, request)
    order: list[SortKey] = []
    keys = request.order
    if by_metric:
        first, keys = keys[0], keys[1:]
        has_it = (*_series_of_run(job_series, project_id, first.key), job_series.c.last.is_not(None))
        query = query.join(job_series, and_(*has_it))
        order.append((job_series.c.last, first.descending))
    for number, key in enumerate(keys):
        query, by = _joined(query, key, number)
        order += by
    return _page(query, order, request, columns)


def _page(
    query: Select[*tuple[Any, ...]], order: Sequence[SortKey], request: RunSearch, columns: Columns
) -> Select[*tuple[Any, ...]]:
    """The page is found in the indexes alone; what else is told of a run is read for those on it."""
    keys = [*order, *_usual(request.order)]
    query = query.add_columns(*(by.label(f"by_{number}") for number, (by, _) in enumerate(keys)))
    found = query.order_by(*(_sorted(by, down) for by, down in keys))
    page = found.offset(_given(request.offset)).limit(_given(request.limit)).subquery("page")
    whole = select(*columns).select_from(page.join(jobs, jobs.c.id == page.c.id))
    return whole.order_by(*(_sorted(page.c[f"by_{number}"], down) for number, (_, down) in enumerate(keys)))


def _sorted(by: ColumnElement[Any], descending: bool) -> ColumnElement[Any]:
    return by.desc() if descending else by.asc()


def _usual(order: Sequence[RunOrder]) -> list[SortKey]:
    named = {key.key for key in order if key.of == "attribute"}
    usual: list[SortKey] = [] if "submitted_at" in named else [(jobs.c.submitted_at, True)]
    return usual if "id" in named else [*usual, (jobs.c.id, False)]


def _base(dialect: str, project_id: Any, request: RunSearch) -> Select[*tuple[Any, ...]]:
    query: Select[*tuple[Any, ...]] = select(jobs.c.id).where(jobs.c.project_id == _given(project_id))
    if len(request.experiments) == 1:
        query = query.where(jobs.c.experiment == request.experiments[0])
    else:
        query = query.where(jobs.c.experiment.in_(request.experiments))
    if request.view is View.ACTIVE:
        query = query.where(jobs.c.deleted_at.is_(None))
    elif request.view is View.DELETED:
        query = query.where(jobs.c.deleted_at.is_not(None))
    if request.rights is not EVERYTHING:
        query = query.where(not_(hidden(request.rights)))
    for number, term in enumerate(request.terms):
        joined = _beside(dialect, project_id, term, number)
        query = query.where(_condition(dialect, project_id, term)) if joined is None else query.join(*joined)
    return query


def _beside(dialect: str, project_id: Any, term: RunTerm, number: int) -> tuple[FromClause, Condition] | None:
    """Returns the one row beside the run that fulfils the term, to be joined by the number of the run's artifact: so
    the indexes of several terms are joined with each other before any run is read."""
    if term.of == "metric":
        series = job_series.alias(f"of_{number}")
        return series, and_(
            *_series_of_run(series, project_id, term.key),
            _COMPARE[term.operator](series.c.last, _given(term.value)),
        )
    if term.of in ("parameter", "tag") and term.operator != "IS NULL":
        given = tags.alias(f"of_{number}")
        told = () if term.operator == "IS NOT NULL" else (_tag_condition(dialect, given, term),)
        return given, and_(*_tag_of_run(given, project_id, term), *told)
    return None


def _series_of_run(series: FromClause, project_id: Any, name: str) -> tuple[Condition, ...]:
    return (
        series.c.artifact_id == jobs.c.artifact_id,
        series.c.attempt == jobs.c.attempt,
        series.c.project_id == _given(project_id),
        series.c.name == name,
    )


def _tag_of_run(given: FromClause, project_id: Any, term: RunTerm) -> tuple[Condition, ...]:
    return (
        given.c.artifact_id == jobs.c.artifact_id,
        given.c.project_id == _given(project_id),
        given.c.kind == literal("job"),
        given.c.key == (PARAM + term.key if term.of == "parameter" else tag_key(term.key)),
    )


def _condition(dialect: str, project_id: Any, term: RunTerm) -> Condition:
    if term.of in ("parameter", "tag"):  # without the tag: with one it is joined
        return ~_some(*_tag_of_run(tags, project_id, term))
    if term.of == "dataset":
        column = run_datasets.c[term.key]
        return _some(
            run_datasets.c.job_id == jobs.c.id,
            run_datasets.c.project_id == _given(project_id),
            textual(dialect, column, term.operator, term.value),
        )
    if term.key == "artifact_uri":
        address = literal("mlflow-artifacts:/").concat(jobs.c.experiment).concat("/").concat(jobs.c.id)
        return textual(dialect, address.concat("/artifacts"), term.operator, term.value)
    return textual(dialect, jobs.c[term.key], term.operator, term.value)


def _some(*conditions: Condition) -> Condition:
    """Returns the condition that there is a row beside the run that fulfils all of them."""
    return exists(select(literal(1)).where(*conditions).correlate(jobs))


def _tag_condition(dialect: str, given: FromClause, term: RunTerm) -> Condition:
    text = term.value
    if term.operator == "=":
        if (
            isinstance(text, _Slot) or len(text) < SHORT
        ):  # of a longer one the text has this length: see the index
            return given.c.text == _given(text)  # type: ignore[no-any-return]
        if len(text) > SHORT:
            return and_(given.c.text == text[:SHORT], given.c.whole == text)
        return and_(given.c.text == text, given.c.whole.is_(None))
    return textual(dialect, func.coalesce(given.c.whole, given.c.text), term.operator, text)


def textual(dialect: str, column: ColumnElement[Any], how: str, value: Any) -> Condition:
    """A comparison of text as MLflow means it: LIKE heeds case, ILIKE does not."""
    match how:
        case "LIKE":
            if dialect == "sqlite":  # whose LIKE does not heed case; GLOB does
                return column.op("GLOB")(_glob(value))
            return column.like(_given(value))
        case "ILIKE":
            return func.lower(column).like(_given(value) if isinstance(value, _Slot) else value.lower())
        case "IN":
            return column.in_(value)
        case "NOT IN":
            return column.not_in(value)
    return _COMPARE[how](column, _given(value))  # type: ignore[no-any-return]


def _glob(pattern: str) -> str:
    return "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)


def _joined(
    query: Select[*tuple[Any, ...]], key: RunOrder, number: int
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

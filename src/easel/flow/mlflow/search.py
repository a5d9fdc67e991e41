"""`search_runs`: MLflow's filters and orders over all jobs of a project."""

from __future__ import annotations

from collections.abc import Sequence

from easel.flow.mlflow.artifacts import SCHEME
from easel.flow.mlflow.errors import invalid
from easel.flow.mlflow.experiments import number_of
from easel.flow.mlflow.pages import offset_of, token_of
from easel.flow.mlflow.query import (
    LISTED,
    NULLABLE,
    ORDERED,
    TEXTUAL,
    Comparison,
    Entity,
    Operator,
    OrderKey,
    holds,
    parse_filter,
    parse_order,
)
from easel.flow.mlflow.runs import STATUSES, USER, WholeRun, moment, states_of, whole
from easel.records.identity import Caller
from easel.store import run_pages, run_search, runs
from easel.store.engine import Tx
from easel.store.lake.grants import rights_of
from easel.store.run_search import RunOrder, RunSearch, RunTerm, WrittenRun
from easel.store.run_search import View as View

MAX_RESULTS = 50_000
_ALIASES = {
    "created": "start_time",
    "Created": "start_time",
    "run name": "run_name",
    "Run name": "run_name",
    "Run Name": "run_name",
}
_COLUMNS = {
    "start_time": "submitted_at",
    "end_time": "ended_at",
    "run_name": "name",
    "run_id": "id",
    "status": "state",
    "artifact_uri": "artifact_uri",
    "user_id": "user_id",
}
_TIMES = ("start_time", "end_time")


def search(
    tx: Tx,
    caller: Caller,
    experiment_ids: Sequence[str],
    *,
    filter_string: str | None = None,
    view: View = View.ACTIVE,
    max_results: int = 1000,
    order_by: Sequence[str] = (),
    page_token: str | None = None,
) -> tuple[Sequence[WholeRun | str], str | None]:
    """A page of runs with all that they logged, as records or as JSON, and the token of the next page."""
    if not 1 <= max_results <= MAX_RESULTS:
        raise invalid(
            f"Invalid value {max_results} for parameter 'max_results' supplied: it must be between 1 and {MAX_RESULTS}"
        )
    offset = offset_of(page_token)
    terms = [_term(each) for each in parse_filter(filter_string)]
    order = [_order(each) for each in parse_order(order_by)]
    numbers = [number_of(each) for each in experiment_ids]
    wanted = sorted({number for number in numbers if 0 <= number < 2**31})
    if not wanted:
        return [], None
    request = RunSearch(wanted, view, terms, order, offset, max_results + 1, rights_of(tx, caller))
    found: Sequence[WholeRun | str]
    if tx.conn.dialect.name == "postgresql":
        written = run_search.texts(tx, caller.project_id, request, _WRITTEN)
        more = len(written) > max_results
        found = _completed(tx, caller, written[:max_results])
    else:
        records = run_search.records(tx, caller.project_id, request)
        more, found = len(records) > max_results, whole(tx, caller, records[:max_results])
    return found, token_of(offset + max_results) if more else None


_WRITTEN = run_pages.written_columns(STATUSES, SCHEME)


def _completed(tx: Tx, caller: Caller, found: Sequence[WrittenRun]) -> Sequence[WholeRun | str]:
    """Returns runs that the database wrote as JSON, and the others as records."""
    left = [run.id for run in found if run.written is None]
    known = runs.find_many(tx, caller.project_id, left) if left else {}
    others = iter(whole(tx, caller, [known[run_id] for run_id in left]) if left else ())
    return [next(others) if run.written is None else run.written for run in found]


def _term(each: Comparison) -> RunTerm:
    match each.entity:
        case Entity.METRIC:
            if each.operator not in ORDERED:
                raise invalid(f"Invalid comparator '{each.operator.value}' not one of '{sorted(ORDERED)}'")
            if not isinstance(each.value, float):
                raise invalid(f"Expected numeric value type for metric. Found {each.value!r}")
            return RunTerm("metric", each.key, each.operator.value, each.value)
        case Entity.PARAM | Entity.TAG:
            return _textual(each, each.entity.value, each.key, NULLABLE)
        case Entity.DATASET:
            if each.key not in ("name", "digest", "context"):
                raise invalid(
                    f"Invalid dataset key '{each.key}' specified. Valid keys are name, digest, context"
                )
            return _textual(each, "dataset", each.key, LISTED)
    return _attribute(each, _ALIASES.get(each.key, each.key))


def _textual(each: Comparison, of: str, key: str, allowed: frozenset[Operator]) -> RunTerm:
    if each.operator not in allowed:
        raise invalid(f"Invalid comparator '{each.operator.value}' not one of '{sorted(allowed)}'")
    if isinstance(each.value, float):
        raise invalid(f"Expected a quoted string value for {of} (e.g. 'my-value'). Got value {each.value:g}")
    return RunTerm(of, key, each.operator.value, each.value)


def _attribute(each: Comparison, key: str) -> RunTerm:
    if key not in _COLUMNS:
        raise invalid(f"Invalid attribute key '{each.key}' specified. Valid keys are '{sorted(_COLUMNS)}'")
    column = _COLUMNS[key]
    if key in _TIMES:
        if each.operator not in ORDERED or not isinstance(each.value, float):
            raise invalid(f"Expected numeric value type for numeric attribute: {key}. Found {each.value!r}")
        return RunTerm("attribute", column, each.operator.value, moment(int(each.value)))
    if key == "user_id":
        return _textual(each, "tag", USER, TEXTUAL)
    if isinstance(each.value, tuple) and key != "run_id":
        raise invalid("Only the 'run_id' attribute supports comparison with a list of quoted string values.")
    term = _textual(each, "attribute", column, LISTED)
    if key != "status":
        return term
    if each.operator in (Operator.EQ, Operator.IN):
        return RunTerm("attribute", column, "IN", _states(each.value))
    if each.operator in (Operator.NE, Operator.NOT_IN):
        return RunTerm("attribute", column, "NOT IN", _states(each.value))
    matching = [
        status for status in ("SCHEDULED", "RUNNING", "FINISHED", "FAILED", "KILLED") if holds(each, status)
    ]
    return RunTerm(
        "attribute", column, "IN", tuple(state for status in matching for state in states_of(status))
    )


def _states(value: object) -> tuple[str, ...]:
    statuses = value if isinstance(value, tuple) else (str(value),)
    return tuple(state for status in statuses for state in states_of(status.upper()))


def _order(each: OrderKey) -> RunOrder:
    if each.entity is Entity.DATASET:
        raise invalid("Invalid order_by entity: dataset")
    if each.entity is not Entity.ATTRIBUTE:
        return RunOrder(each.entity.value, each.key, each.descending)
    key = _ALIASES.get(each.key, each.key)
    if key not in ("start_time", "end_time", "run_name", "run_id", "status", "artifact_uri"):
        raise invalid(f"Invalid order_by entity: attribute '{each.key}'")
    column = "id" if key == "artifact_uri" else _COLUMNS[key]
    return RunOrder("attribute", column, each.descending)

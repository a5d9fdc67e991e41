"""Experiments: create, find, search, rename, tag, delete, restore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from easel.errors import Denied
from easel.flow.mlflow.checks import (
    MAX_EXPERIMENT_TAG,
    KeyValue,
    check_experiment_name,
    check_length,
    check_tag,
)
from easel.flow.mlflow.errors import ErrorCode, MlflowRefusal, absent, invalid, taken
from easel.flow.mlflow.pages import page_of
from easel.flow.mlflow.query import (
    LISTED,
    NULLABLE,
    ORDERED,
    Comparison,
    Entity,
    OrderKey,
    holds,
    parse_filter,
    parse_order,
)
from easel.records.identity import Caller
from easel.records.run import Experiment
from easel.store import experiments
from easel.store.engine import Tx
from easel.store.run_search import View

MAX_RESULTS = 50_000
_TIMES = {"creation_time": "created_at", "last_update_time": "updated_at"}
_ORDERED_BY = {"name", "experiment_id", *_TIMES}


def number_of(experiment_id: str) -> int:
    """An experiment's id is its number in the project."""
    try:
        return int(experiment_id or 0)
    except ValueError:
        raise invalid(
            f"Invalid experiment ID '{experiment_id[:80]}'. Experiment ID must be a valid integer."
        ) from None


def find(tx: Tx, caller: Caller, experiment_id: str) -> Experiment:
    assert caller.project is not None
    found = experiments.find(tx, caller.project_id, number_of(experiment_id), caller.project.created_at)
    if found is None:
        raise absent(f"No Experiment with id={experiment_id} exists")
    return found


def find_active(tx: Tx, caller: Caller, experiment_id: str) -> Experiment:
    found = find(tx, caller, experiment_id)
    if found.deleted_at is not None:
        raise invalid(
            f"The experiment {found.number} must be in the 'active' state. Current state is deleted."
        )
    return found


def find_by_name(tx: Tx, caller: Caller, name: str) -> Experiment:
    found = next((each for each in _all(tx, caller) if each.name == name), None)
    if found is None:
        raise absent(f"Could not find experiment with name '{name}'")
    return found


def create(tx: Tx, caller: Caller, name: str, location: str | None, tags: Sequence[KeyValue]) -> int:
    check_experiment_name(name)
    if location:
        check_length("artifact_location", 2048, location)
    kept = {tag.key: tag.value for tag in (check_tag(t, most=MAX_EXPERIMENT_TAG, cut=False) for t in tags)}
    experiments.hold(tx, caller.project_id)
    _check_free(tx, caller, name)
    number = experiments.add(tx, caller.project_id, name, location or None, kept)
    _tell(tx, caller, "experiment.created", number, {"name": name})
    return number


def rename(tx: Tx, caller: Caller, experiment_id: str, name: str) -> None:
    check_experiment_name(name)
    experiments.hold(tx, caller.project_id)
    found = find(tx, caller, experiment_id)
    if found.deleted_at is not None:
        raise MlflowRefusal(ErrorCode.INVALID_STATE, "Cannot rename a non-active experiment.")
    if name != found.name:
        _check_free(tx, caller, name)
    experiments.change(tx, caller.project_id, found, name=name)
    _tell(tx, caller, "experiment.renamed", found.number, {"name": name})


def _check_free(tx: Tx, caller: Caller, name: str) -> None:
    standing = next((each for each in _all(tx, caller) if each.name == name), None)
    if standing is not None and standing.deleted_at is not None:
        raise taken(
            f"Experiment '{name}' already exists in deleted state. You can restore the experiment, or permanently "
            f"delete the experiment to create a new one. (id={standing.number})"
        )
    if standing is not None:
        raise taken(f"Experiment(name={name}) already exists.")


def delete(tx: Tx, caller: Caller, experiment_id: str) -> None:
    """Hide an experiment with its runs; nothing is lost."""
    found = find(tx, caller, experiment_id)
    if found.deleted_at is not None:
        raise absent(f"No Experiment with id={experiment_id} exists")
    experiments.change(tx, caller.project_id, found, deleted_at=tx.now)
    experiments.mark_runs(tx, caller.project_id, found.number, tx.now)
    _tell(tx, caller, "experiment.deleted", found.number, {"name": found.name})


def restore(tx: Tx, caller: Caller, experiment_id: str) -> None:
    found = find(tx, caller, experiment_id)
    if found.deleted_at is None:
        raise absent(f"No deleted Experiment with id={experiment_id} exists")
    experiments.change(tx, caller.project_id, found, deleted_at=None)
    experiments.mark_runs(tx, caller.project_id, found.number, None)
    _tell(tx, caller, "experiment.restored", found.number, {"name": found.name})


def set_tag(tx: Tx, caller: Caller, experiment_id: str, tag: KeyValue) -> None:
    kept = check_tag(tag, most=MAX_EXPERIMENT_TAG, cut=False)
    experiments.hold(tx, caller.project_id)
    found = find_active(tx, caller, experiment_id)
    experiments.change(tx, caller.project_id, found, tags={**found.tags, kept.key: kept.value})


def delete_tag(tx: Tx, caller: Caller, experiment_id: str, key: str) -> None:
    experiments.hold(tx, caller.project_id)
    found = find_active(tx, caller, experiment_id)
    if key not in found.tags:
        raise absent(f"No tag with name: {key} in experiment with id {experiment_id}")
    left = {name: value for name, value in found.tags.items() if name != key}
    experiments.change(tx, caller.project_id, found, tags=left)


def search(
    tx: Tx,
    caller: Caller,
    *,
    view: View = View.ACTIVE,
    filter_string: str | None = None,
    order_by: Sequence[str] = (),
    max_results: int = 1000,
    page_token: str | None = None,
) -> tuple[Sequence[Experiment], str | None]:
    """A page of experiments, the newest first, and the token of the next page."""
    if not 1 <= max_results <= MAX_RESULTS:
        raise invalid(
            f"Invalid value {max_results} for parameter 'max_results' supplied: It must be at most {MAX_RESULTS}"
        )
    terms = [_checked(term) for term in parse_filter(filter_string)]
    order = parse_order(order_by)
    found = [each for each in _all(tx, caller) if _in_view(each, view)]
    found = [each for each in found if all(holds(term, _value(each, term)) for term in terms)]
    found.sort(key=lambda each: -each.number)
    if not order:
        found.sort(key=lambda each: each.created_at, reverse=True)
    for key in reversed(order):
        if key.entity is not Entity.ATTRIBUTE or key.key not in _ORDERED_BY:
            raise invalid(f"Invalid order_by entity: {key.entity.value}.{key.key}")
        found.sort(key=lambda each, by=key: _sort_value(each, by), reverse=key.descending)  # type: ignore[misc]
    return page_of(found, page_token, max_results)


def _all(tx: Tx, caller: Caller) -> list[Experiment]:
    if caller.project is None:
        raise Denied("an experiment belongs to a project")
    return experiments.all_of(tx, caller.project_id, caller.project.created_at)


def _in_view(each: Experiment, view: View) -> bool:
    return view is View.ALL or (each.deleted_at is None) is (view is View.ACTIVE)


def _checked(term: Comparison) -> Comparison:
    if term.entity is Entity.TAG:
        allowed = NULLABLE
    elif term.entity is Entity.ATTRIBUTE and term.key in _TIMES:
        allowed = ORDERED
    elif term.entity is Entity.ATTRIBUTE and term.key in ("name", "experiment_id"):
        allowed = LISTED
    else:
        raise invalid(
            f"Invalid attribute key '{term.key}' specified. Valid keys are name, creation_time, "
            "last_update_time and tags"
        )
    if term.operator not in allowed:
        raise invalid(f"Invalid comparator '{term.operator.value}' for '{term.key}'")
    return term


def _value(each: Experiment, term: Comparison) -> Any:
    if term.entity is Entity.TAG:
        return each.tags.get(term.key)
    if term.key in _TIMES:
        return int(getattr(each, _TIMES[term.key]).timestamp() * 1000)
    return each.name if term.key == "name" else str(each.number)


def _sort_value(each: Experiment, key: OrderKey) -> Any:
    if key.key in _TIMES:
        return getattr(each, _TIMES[key.key])
    return each.name if key.key == "name" else each.number


def _tell(tx: Tx, caller: Caller, kind: str, number: int, body: dict[str, Any]) -> None:
    tx.emit(kind, str(number), project_id=caller.project_id, actor=caller.user.id, body=body)

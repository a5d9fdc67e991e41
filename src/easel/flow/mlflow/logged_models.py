"""Logged models of MLflow 3: made by a run, with params, tags, metrics and files of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from easel.declare.roles import Role
from easel.errors import Denied
from easel.flow.mlflow import experiments
from easel.flow.mlflow.checks import MAX_KEY, KeyValue, MetricPoint, check_length, check_param, check_tag
from easel.flow.mlflow.errors import absent, invalid
from easel.flow.mlflow.pages import page_of
from easel.flow.mlflow.query import NULLABLE, ORDERED, Comparison, Entity, holds, parse_filter
from easel.flow.mlflow.runs import milliseconds, random_name
from easel.records.identity import Caller
from easel.records.run import LoggedModel
from easel.store import logged_models
from easel.store.engine import Tx

VERSIONS = "mlflow.modelVersions"
MAX_RUN_ID = 40
STATUSES = ("LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED")
_SHORT = {name.removeprefix("LOGGED_MODEL_"): name for name in STATUSES} | {"FAILED": STATUSES[2]}
_ATTRIBUTES: dict[str, Callable[[LoggedModel], Any]] = {
    "name": lambda m: m.name,
    "model_name": lambda m: m.name,
    "model_id": lambda m: m.id,
    "model_type": lambda m: m.model_type,
    "source_run_id": lambda m: m.run_id,
    "status": lambda m: m.status.removeprefix("LOGGED_MODEL_"),
    "creation_timestamp": lambda m: milliseconds(m.created_at),
    "creation_time": lambda m: milliseconds(m.created_at),
    "last_updated_timestamp": lambda m: milliseconds(m.updated_at),
    "last_updated_time": lambda m: milliseconds(m.updated_at),
}


def create(
    tx: Tx,
    caller: Caller,
    *,
    experiment_id: str,
    name: str | None,
    model_type: str | None,
    run_id: str | None,
    params: Sequence[KeyValue],
    tags: Sequence[KeyValue],
) -> LoggedModel:
    experiment = experiments.find_active(tx, caller, experiment_id)
    if name is not None and (not name or any(c in name for c in "/:.%\"'")):
        raise invalid(
            f"Invalid model name ({name!r}) provided. Model name must be a non-empty string and cannot contain the "
            "following characters: ('/', ':', '.', '%', '\"', \"'\")"
        )
    check_length("source_run_id", MAX_RUN_ID, run_id or "")
    check_length("name", MAX_KEY, name or "")
    new = LoggedModel(
        id=f"m-{tx.rng.getrandbits(128):032x}",
        project_id=caller.project_id,
        experiment=experiment.number,
        name=name or random_name(tx.rng),
        status=STATUSES[0],
        status_message=None,
        model_type=model_type or None,
        run_id=run_id or None,
        params={each.key: each.value for each in map(check_param, params)},
        tags={each.key: each.value for each in map(check_tag, tags)},
        metrics=[],
        creator=caller.user.id,
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )
    logged_models.add(tx, new)
    tx.emit(
        "model.logged", new.id, project_id=caller.project_id, actor=caller.user.id, body={"name": new.name}
    )
    return new


def find(tx: Tx, caller: Caller, model_id: str) -> LoggedModel:
    found = logged_models.find(tx, caller.project_id, model_id)
    if found is None:
        raise absent(f"Logged model with ID '{model_id[:80]}' not found.")
    return found


def _own(tx: Tx, caller: Caller, model_id: str) -> LoggedModel:
    logged_models.hold(tx, model_id)
    found = find(tx, caller, model_id)
    if found.creator != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied(
            f"model {model_id} is somebody else's: its owner or an admin of the project may change it"
        )
    return found


def finalise(tx: Tx, caller: Caller, model_id: str, status: str) -> LoggedModel:
    found = _own(tx, caller, model_id)
    wanted = _SHORT.get(status, status)
    if wanted not in STATUSES:
        raise invalid(f"Invalid model status: {status!r}. Valid statuses are: {', '.join(STATUSES)}")
    logged_models.change(tx, found.id, status=wanted)
    return find(tx, caller, model_id)


def delete(tx: Tx, caller: Caller, model_id: str) -> None:
    found = _own(tx, caller, model_id)
    logged_models.change(tx, found.id, deleted_at=tx.now)


def set_tags(tx: Tx, caller: Caller, model_id: str, tags: Sequence[KeyValue]) -> LoggedModel:
    logged_models.hold(tx, model_id)
    found = find(tx, caller, model_id)
    new = {each.key: each.value for each in map(check_tag, tags)}
    logged_models.change(tx, found.id, tags={**found.tags, **new})
    return find(tx, caller, model_id)


def note_version(tx: Tx, caller: Caller, model_id: str, name: str, version: int) -> None:
    """Write down on a logged model that it was registered, as MLflow's own server does."""
    logged_models.hold(tx, model_id)
    found = find(tx, caller, model_id)
    new = {"name": name, "version": version}
    try:
        known = json.loads(found.tags.get(VERSIONS, "[]"))
    except ValueError:  # somebody else wrote this tag
        known = []
    known = [each for each in known if each != new] if isinstance(known, list) else []
    logged_models.change(tx, found.id, tags={**found.tags, VERSIONS: json.dumps([*known, new])})


def delete_tag(tx: Tx, caller: Caller, model_id: str, key: str) -> None:
    logged_models.hold(tx, model_id)
    found = find(tx, caller, model_id)
    if key not in found.tags:
        raise absent(f"No tag with key {key!r} found for model with ID {model_id!r}.")
    logged_models.change(tx, found.id, tags={k: v for k, v in found.tags.items() if k != key})


def log_params(tx: Tx, caller: Caller, model_id: str, params: Sequence[KeyValue]) -> None:
    found = _own(tx, caller, model_id)
    new = {each.key: each.value for each in map(check_param, params)}
    other = next((key for key, value in new.items() if found.params.get(key, value) != value), None)
    if other is not None:
        raise invalid(f"Changing param values is not allowed. Param with key='{other}' was already logged.")
    logged_models.change(tx, found.id, params={**found.params, **new})


def log_metrics(tx: Tx, caller: Caller, run_id: str, points: Sequence[MetricPoint]) -> None:
    """Points that name a model are its metrics too: the newest of each key, run and data set."""
    by_model: dict[str, list[MetricPoint]] = {}
    for point in points:
        if point.model_id:
            by_model.setdefault(point.model_id, []).append(point)
    for model_id, new in sorted(by_model.items()):
        logged_models.hold(tx, model_id)
        found = find(tx, caller, model_id)
        known = {_metric_key(metric): dict(metric) for metric in found.metrics}
        for point in new:
            metric = {
                "key": point.key,
                "value": point.value if abs(point.value) < float("inf") else str(point.value),
                "timestamp": point.timestamp,
                "step": point.step,
                "model_id": model_id,
                "run_id": run_id,
                "dataset_name": point.dataset_name,
                "dataset_digest": point.dataset_digest,
            }
            known[_metric_key(metric)] = metric
        logged_models.change(tx, model_id, metrics=list(known.values()))


def _metric_key(metric: Mapping[str, Any]) -> tuple[Any, ...]:
    return metric["key"], metric["run_id"], metric["dataset_name"], metric["dataset_digest"]


def search(
    tx: Tx,
    caller: Caller,
    experiment_ids: Sequence[str],
    *,
    filter_string: str | None,
    datasets: Sequence[Mapping[str, Any]],
    max_results: int,
    order_by: Sequence[Mapping[str, Any]],
    page_token: str | None,
) -> tuple[Sequence[LoggedModel], str | None]:
    """A page of models, newest first, and the token of the next page."""
    if not 1 <= max_results <= 1000:
        raise invalid(f"Invalid value {max_results} for parameter 'max_results' supplied: between 1 and 1000")
    if not all(each.get("dataset_name") for each in datasets):
        raise invalid("`dataset_name` in the `datasets` clause must be specified.")
    numbers = [experiments.number_of(each) for each in experiment_ids]
    terms = [_checked(term) for term in parse_filter(filter_string)]
    found = logged_models.of_experiments(tx, caller.project_id, [n for n in numbers if 0 <= n < 2**31])
    found = [each for each in found if all(_fulfils(each, term, datasets) for term in terms)]
    if datasets and not any(term.entity is Entity.METRIC for term in terms):
        found = [each for each in found if _measured_on(each, datasets)]
    for key in reversed(order_by):
        field, ascending = str(key.get("field_name", "")), bool(key.get("ascending", False))
        entity, _, name = field.rpartition(".")
        if (not entity and field not in _ATTRIBUTES) or entity not in ("", "metrics"):
            raise invalid(f"Invalid order by field name: {field}")
        values = {each.id: _sort_value(each, entity, name or field, key) for each in found}
        have = sorted(
            (each for each in found if values[each.id] is not None),
            key=lambda each: values[each.id],
            reverse=not ascending,
        )
        found = have + [each for each in found if values[each.id] is None]
    return page_of(found, page_token, max_results)


def _checked(term: Comparison) -> Comparison:
    if term.entity is Entity.ATTRIBUTE and term.key not in _ATTRIBUTES:
        raise invalid(f"Invalid attribute key '{term.key}' specified. Valid keys are {sorted(_ATTRIBUTES)}")
    if term.entity is Entity.DATASET:
        raise invalid("Invalid entity type 'dataset': name data sets in `datasets`")
    if term.entity is Entity.METRIC and (term.operator not in ORDERED or not isinstance(term.value, float)):
        raise invalid(f"Expected numeric value type for metric. Found {term.value!r}")
    if term.entity in (Entity.PARAM, Entity.TAG) and (
        term.operator not in NULLABLE or isinstance(term.value, float)
    ):
        raise invalid(f"Invalid comparator '{term.operator.value}' for {term.entity.value} '{term.key}'")
    return term


def _fulfils(model: LoggedModel, term: Comparison, datasets: Sequence[Mapping[str, Any]]) -> bool:
    match term.entity:
        case Entity.ATTRIBUTE:
            return holds(term, _ATTRIBUTES[term.key](model))
        case Entity.TAG:
            return holds(term, model.tags.get(term.key))
        case Entity.PARAM:
            return holds(term, model.params.get(term.key))
    return any(
        isinstance(metric["value"], int | float) and holds(term, float(metric["value"]))
        for metric in model.metrics
        if metric["key"] == term.key and (not datasets or any(_same_data(metric, each) for each in datasets))
    )


def _measured_on(model: LoggedModel, datasets: Sequence[Mapping[str, Any]]) -> bool:
    return any(_same_data(metric, each) for metric in model.metrics for each in datasets)


def _same_data(metric: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    name, digest = wanted.get("dataset_name"), wanted.get("dataset_digest")
    return metric["dataset_name"] == name and (not digest or metric["dataset_digest"] == digest)


def _sort_value(model: LoggedModel, entity: str, name: str, key: Mapping[str, Any]) -> Any:
    if entity != "metrics":
        return _ATTRIBUTES[name](model)
    of = [m for m in model.metrics if m["key"] == name and isinstance(m["value"], int | float)]
    if key.get("dataset_name"):
        of = [m for m in of if _same_data(m, key)]
    return max(of, key=lambda m: (m["step"], m["timestamp"]))["value"] if of else None

"""Our records as the JSON that MLflow's clients read. Fields without a value are left out."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from easel.flow.mlflow.artifacts import SCHEME, ListedFile, model_uri, run_uri
from easel.flow.mlflow.metrics import Columns, Point
from easel.flow.mlflow.runs import WholeRun, milliseconds, status_of
from easel.records.run import (
    DatasetUse,
    Experiment,
    LoggedModel,
    ModelUse,
    ModelVersion,
    RegisteredModel,
    RunRecord,
)

Json = dict[str, Any]


def without_none(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def pairs(values: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in values.items()]


def experiment(of: Experiment) -> Json:
    return without_none(
        {
            "experiment_id": str(of.number),
            "name": of.name,
            "artifact_location": of.artifact_location or f"{SCHEME}{of.number}",
            "lifecycle_stage": "active" if of.deleted_at is None else "deleted",
            "creation_time": milliseconds(of.created_at),
            "last_update_time": milliseconds(of.updated_at),
            "tags": pairs(of.tags) or None,
        }
    )


def run_info(of: WholeRun) -> Json:
    name = of.log.tags.get("mlflow.runName", of.record.name)
    return _info(of.record, name, of.user, of.location)


def _info(record: RunRecord, name: str, user: str, location: str | None) -> Json:
    found = {
        "run_uuid": record.id,
        "run_id": record.id,
        "run_name": name,
        "experiment_id": str(record.experiment),
        "user_id": user,
        "status": status_of(record.state),
        "start_time": milliseconds(record.submitted_at),
        "artifact_uri": run_uri(record, location),
        "lifecycle_stage": "active" if record.deleted_at is None else "deleted",
    }
    if record.ended_at is not None:
        found["end_time"] = milliseconds(record.ended_at)
    return found


def found_run(of: WholeRun | str) -> Json | orjson.Fragment:
    """Returns a run as a search found it: what the database wrote as JSON is passed on as it is."""
    return orjson.Fragment(of) if isinstance(of, str) else run(of)


def run(of: WholeRun) -> Json:
    log = of.log
    data: Json = {}
    if log.metrics:
        data["metrics"] = [
            {
                "key": each.name,
                "value": number(each.value, each.text),
                "timestamp": milliseconds(each.at),
                "step": each.step,
            }
            for each in log.metrics
        ]
    if log.params:
        data["params"] = pairs(log.params)
    if log.tags:
        data["tags"] = pairs(log.tags)
    inputs: Json = {}
    if log.datasets:
        inputs["dataset_inputs"] = [_dataset(each) for each in log.datasets]
    if taken := _models(log.models, "input"):
        inputs["model_inputs"] = [{"model_id": each["model_id"]} for each in taken]
    found: Json = {"info": run_info(of), "data": data, "inputs": inputs}
    if made := _models(log.models, "output"):
        found["outputs"] = {"model_outputs": made}
    return found


def _models(uses: Iterable[ModelUse], role: str) -> list[Json]:
    return [{"model_id": each.model_id, "step": each.step} for each in uses if each.role == role]


def _dataset(of: DatasetUse) -> Json:
    said = {name: of.body.get(name) for name in ("source_type", "source", "schema", "profile")}
    tags = sorted(of.body.get("tags", []), key=lambda tag: str(tag["key"]))
    return {"tags": tags, "dataset": without_none({"name": of.name, "digest": of.digest, **said})}


def number(value: float | None, text: str | None) -> float | str:
    """Returns a number as MLflow's own server says it: what is infinite is the largest number that there is."""
    if text == "nan":
        return "NaN"
    if text is not None:
        return math.copysign(sys.float_info.max, -1 if text.startswith("-") else 1)
    assert value is not None
    return value


def point(key: str, of: Point) -> Json:
    return {
        "key": key,
        "value": number(of.value, of.text),
        "timestamp": milliseconds(of.at),
        "step": of.step,
    }


def points(key: str, parts: Sequence[Columns], token: str | None) -> Json:
    """Returns a page of a history that came in columns, written part by part: there may be a million points."""
    written = (
        orjson.Fragment(b"[" + b",".join(_written(key, part) for part in parts) + b"]") if parts else None
    )
    return without_none({"metrics": written, "next_page_token": token})


def _written(key: str, part: Columns) -> bytes:
    """The points as JSON with commas between them."""
    rows = [
        {
            "key": key,
            "value": number(None, value) if isinstance(value, str) else value,
            "timestamp": at,
            "step": step,
        }
        for step, value, at in zip(*part, strict=True)
    ]
    return orjson.dumps(rows)[1:-1]


def file(of: ListedFile, path: str | None = None) -> Json:
    shown = of.path if path is None else path
    return (
        {"path": shown, "is_dir": True}
        if of.size is None
        else {"path": shown, "is_dir": False, "file_size": of.size}
    )


def logged_model(of: LoggedModel, location: str | None, registered: Sequence[ModelVersion] = ()) -> Json:
    info = {
        "model_id": of.id,
        "experiment_id": str(of.experiment),
        "name": of.name,
        "creation_timestamp_ms": milliseconds(of.created_at),
        "last_updated_timestamp_ms": milliseconds(of.updated_at),
        "artifact_uri": model_uri(of, location),
        "status": of.status,
        "status_message": of.status_message,
        "model_type": of.model_type,
        "source_run_id": of.run_id,
        "tags": pairs(of.tags) or None,
        "registrations": [{"name": v.name, "version": str(v.version)} for v in registered] or None,
    }
    data = {
        "params": pairs(of.params) or None,
        "metrics": [without_none({**m, "value": _logged(m["value"])}) for m in of.metrics] or None,
    }
    return {"info": without_none(info), "data": without_none(data)}


def _logged(value: Any) -> Any:
    return value if isinstance(value, int | float) else number(None, str(value))


def model_version(of: ModelVersion, model: RegisteredModel | None, user: str | None = None) -> Json:
    aliases = [] if model is None else [a for a, number in model.aliases.items() if number == of.version]
    return without_none(
        {
            "name": of.name,
            "version": str(of.version),
            "creation_timestamp": milliseconds(of.created_at),
            "last_updated_timestamp": milliseconds(of.updated_at),
            "user_id": user,
            "current_stage": of.stage,
            "description": of.description or "",
            "source": of.source,
            "run_id": of.run_id or "",
            "status": "READY",
            "tags": pairs(of.tags) or None,
            "run_link": of.run_link or "",
            "aliases": sorted(aliases) or None,
            "model_id": of.model_id,
        }
    )


def registered_model(of: RegisteredModel, latest: Sequence[ModelVersion] = ()) -> Json:
    aliases = [{"alias": a, "version": str(version)} for a, version in sorted(of.aliases.items())]
    return without_none(
        {
            "name": of.name,
            "creation_timestamp": milliseconds(of.created_at),
            "last_updated_timestamp": milliseconds(of.updated_at),
            "description": of.description or "",
            "latest_versions": [model_version(each, of) for each in latest] or None,
            "tags": pairs(of.tags) or None,
            "aliases": aliases or None,
        }
    )

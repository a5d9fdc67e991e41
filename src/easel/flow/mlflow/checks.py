"""MLflow's own limits and rules for names and values, checked before anything is kept."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from easel.flow.mlflow.errors import MlflowRefusal, invalid

MAX_METRICS, MAX_PARAMS, MAX_TAGS, MAX_ENTITIES = 1000, 100, 100, 1000
MAX_BATCH_BYTES = 1_000_000
MAX_KEY, MAX_PARAM, MAX_TAG = 250, 6000, 8000
MAX_EXPERIMENT_TAG = 20_000
MAX_REGISTRY_TAG = 100_000
_NAME = re.compile(r"[/\w.\- :]*")
_RUN_ID = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")
_ALIAS = re.compile(r"[\w\-]+")
_CHARACTERS = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) "
    "and slashes (/)."
)


class KeyValue(NamedTuple):
    key: str
    value: str


class MetricPoint(NamedTuple):
    """One logged value; `timestamp` in milliseconds. The last three name the model and data set that it is about."""

    key: str
    value: float
    timestamp: int
    step: int
    model_id: str | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


def shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def invalid_value(path: str, value: Any, why: str = "") -> MlflowRefusal:
    end = f" {why}" if why else ""
    return invalid(f"Invalid value {shown(value)} for parameter '{path}' supplied:{end}")


def check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise invalid_value(path, name, _CHARACTERS)
    _check_no_path(name, path)


def _check_no_path(name: str, path: str) -> None:
    plain = posixpath.normpath(name)
    if plain != name or plain == "." or plain.startswith(("..", "/")):
        raise invalid_value(
            path,
            name,
            "Names may be treated as files in certain cases, and must not resolve to other names when treated "
            f"as such. This name would resolve to {plain!r}",
        )


def check_length(what: str, most: int, value: str) -> None:
    if len(value) > most:
        raise invalid(f"'{what}' exceeds the maximum length of {most} characters")


def check_run_id(run_id: str) -> None:
    if not _RUN_ID.fullmatch(run_id):
        raise invalid_value("run_id", run_id)


def check_metric(point: MetricPoint, path: str = "") -> None:
    check_name(point.key, _joined(path, "name"))
    if point.timestamp < 0:
        raise invalid_value(
            _joined(path, "timestamp"),
            point.timestamp,
            f"metric '{point.key}' (value={point.value}). Timestamp must be a nonnegative long (64-bit integer) ",
        )
    check_length("Metric name", MAX_KEY, point.key)


def check_param(param: KeyValue, path: str = "") -> KeyValue:
    """The parameter as it is kept: a value that is too long is cut, as MLflow's own server does."""
    check_name(param.key, _joined(path, "key"))
    check_length("Param key", MAX_KEY, param.key)
    return KeyValue(param.key, param.value[:MAX_PARAM])


def check_tag(tag: KeyValue, path: str = "", most: int = MAX_TAG, *, cut: bool = True) -> KeyValue:
    check_name(tag.key, _joined(path, "key"))
    check_length(_joined(path, "key"), MAX_KEY, tag.key)
    if not cut:
        check_length(_joined(path, "value"), most, tag.value)
    return KeyValue(tag.key, tag.value[:most])


def check_batch(metrics: Sequence[MetricPoint], params: Sequence[KeyValue], tags: Sequence[KeyValue]) -> None:
    total = len(metrics) + len(params) + len(tags)
    for what, most, length in (
        ("metrics", MAX_METRICS, len(metrics)),
        ("params", MAX_PARAMS, len(params)),
        ("tags", MAX_TAGS, len(tags)),
        ("metrics, params, and tags", MAX_ENTITIES, total),
    ):
        if length > most:
            raise invalid(
                f"A batch logging request can contain at most {most} {what}. Got {length} {what}. Please split up "
                f"{what} across multiple requests and try again."
            )
    keys = [param.key for param in params]
    repeated = [key for number, key in enumerate(keys) if key in keys[:number]]
    if repeated:
        raise invalid(
            f"Duplicate parameter keys have been submitted: {repeated}. Please ensure the request contains only one "
            "param value per param key."
        )


def check_experiment_name(name: str) -> str:
    if not name.strip():
        raise invalid(f"Invalid experiment name: '{name}'. It must not be empty.")
    check_length("name", 500, name)
    return name


def check_model_name(name: str) -> str:
    if not name.strip():
        raise invalid("Missing value for required parameter 'name'.")
    if "/" in name or ":" in name:
        raise invalid(f"Invalid model name '{name}'. Names cannot contain '/' or ':'.")
    _check_no_path(name, "name")
    check_length("name", 256, name)
    return name


def check_alias(alias: str) -> str:
    if not alias:
        raise invalid("Registered model alias name cannot be empty.")
    if not _ALIAS.fullmatch(alias):
        raise invalid(
            f"Invalid alias name: '{alias}'. Names may only contain alphanumerics, underscores (_), and dashes (-)."
        )
    check_length("alias", 255, alias)
    if alias.lower() == "latest":
        raise invalid("'latest' alias name (case insensitive) is reserved.")
    if re.fullmatch(r"[vV]\d+", alias):
        raise invalid(f"Version alias name '{alias}' is reserved.")
    return alias


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

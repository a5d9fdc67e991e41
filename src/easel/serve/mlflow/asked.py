"""What a client asked for: the fields of its JSON body or query, each read as the type that it must have."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request

from easel.flow.mlflow.checks import KeyValue, MetricPoint, shown
from easel.flow.mlflow.errors import MlflowRefusal, invalid
from easel.flow.mlflow.search import View

_SEE = " See the API docs for more information about request parameters."
_INT64 = 2**63
_NO_OBJECT = "The body of the request is no JSON object."
_VIEWS = {
    "ACTIVE_ONLY": View.ACTIVE,
    "DELETED_ONLY": View.DELETED,
    "ALL": View.ALL,
    "1": View.ACTIVE,
    "2": View.DELETED,
    "3": View.ALL,
}


@dataclass(frozen=True, slots=True)
class AskedFields:
    """One request. A field that is null counts as not given; `size` is how many bytes came."""

    fields: Mapping[str, Any]
    size: int = 0
    lists: Mapping[str, list[str]] | None = None
    """Every value of every parameter of a query, of which `fields` has the last."""

    def text(self, name: str) -> str | None:
        value = self._value(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise _wrong(name, value)
        return _plain(name, value)

    def need_text(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise missing(name)
        return value

    def whole(self, name: str) -> int | None:
        value = self._value(name)
        return None if value is None else as_whole(name, value)

    def flag(self, name: str) -> bool:
        value = self._value(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise _wrong(name, value)

    def items(self, name: str) -> list[Any]:
        if self.lists is not None:
            return list(self.lists.get(name, []))
        value = self._value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _wrong(name, value)
        return value

    def texts(self, name: str) -> list[str]:
        found = self.items(name)
        for each in found:
            if not isinstance(each, str):
                raise _wrong(name, found)
            _plain(name, each)
        return found

    def pairs(self, name: str) -> list[KeyValue]:
        found = []
        given = self.items(name)
        for number, each in enumerate(given):
            if not isinstance(each, Mapping):
                raise _wrong(name, given)
            key, value = each.get("key"), each.get("value")
            if key is None or key == "":
                raise missing(f"{name}[{number}].key")
            if not isinstance(key, str) or not (value is None or isinstance(value, str)):
                raise _wrong(name, given)
            found.append(KeyValue(_plain(name, key), _plain(name, value or "")))
        return found

    def points(self, name: str) -> list[MetricPoint]:
        given = self.items(name)
        return [_usual_point(each) or _point(name, number, each, given) for number, each in enumerate(given)]

    def view(self, name: str) -> View:
        value = self._value(name)
        if value is None:
            return View.ACTIVE
        if str(value) not in _VIEWS:
            raise _wrong(name, value)
        return _VIEWS[str(value)]

    def run_id(self) -> str:
        """`run_uuid` is what older clients call it."""
        if self._value("run_id") is None and self._value("run_uuid") is not None:
            return self.need_text("run_uuid")
        return self.need_text("run_id")

    def _value(self, name: str) -> Any:
        return self.fields.get(name)


def _usual_point(each: Any) -> MetricPoint | None:
    """Returns a point that is as clients send nearly all of theirs; None for one that is to be looked at closely."""
    if type(each) is not dict or len(each) != 4:
        return None
    key, value, at, step = each.get("key"), each.get("value"), each.get("timestamp"), each.get("step")
    if type(key) is not str or not key or not key.isascii() or "\x00" in key or type(value) is not float:
        return None
    if (
        type(at) is not int
        or type(step) is not int
        or not (-_INT64 <= at < _INT64 and -_INT64 <= step < _INT64)
    ):
        return None
    return MetricPoint(key, value, at, step)


def _point(name: str, number: int, each: Any, given: list[Any]) -> MetricPoint:
    if not isinstance(each, Mapping):
        raise _wrong(name, given)
    for needed in ("key", "value", "timestamp"):
        if each.get(needed) is None or each[needed] == "":
            told = f"Missing value for required parameter '{name}[{number}].{needed}'."
            raise invalid(f"Invalid value {shown(given)} for parameter '{name}' supplied: {told}{_SEE}")
    key = each["key"]
    if not isinstance(key, str):
        raise _wrong(name, given)
    try:
        return MetricPoint(
            _plain(name, key),
            as_float("value", each["value"]),
            as_whole("timestamp", each["timestamp"]),
            as_whole("step", each.get("step") or 0),
            _optional(each, "model_id"),
            _optional(each, "dataset_name"),
            _optional(each, "dataset_digest"),
        )
    except MlflowRefusal as error:
        raise invalid(
            f"Invalid value {shown(given)} for parameter '{name}' supplied: {error.message}"
        ) from None


def _optional(each: Mapping[str, Any], name: str) -> str | None:
    value = each.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value)
    return _plain(name, value) if value else None


def as_whole(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = int(value)
        if isinstance(value, float) and value != number:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise _wrong(name, value) from None
    if not -_INT64 <= number < _INT64:
        raise _wrong(name, value)
    return number


def as_float(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (ValueError, TypeError):
        raise _wrong(name, value) from None
    except OverflowError:
        return math.inf


def missing(name: str) -> MlflowRefusal:
    return invalid(f"Missing value for required parameter '{name}'.{_SEE}")


def _wrong(name: str, value: Any) -> MlflowRefusal:
    hint = f" Hint: Value was of type '{type(value).__name__}'."
    return invalid(f"Invalid value {shown(value)} for parameter '{name}' supplied: {hint}{_SEE}")


def _plain(name: str, value: str) -> str:
    """Refuses text that a database cannot keep."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(
            f"Invalid value for parameter '{name}' supplied: it is not valid Unicode.{_SEE}"
        ) from None
    if "\x00" in value:
        raise invalid(f"Invalid value for parameter '{name}' supplied: it contains a NUL character.{_SEE}")
    return value


def _read_json(body: bytes | str) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:  # NaN and Infinity, which Python's clients may write, are no JSON
        return json.loads(body)


async def read_asked(request: Request) -> AskedFields:
    """Returns the fields of the request: of its query, of its body, and of its address."""
    named = {name: value for name, value in request.path_params.items() if name != "project"}
    if request.method == "GET":
        every: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            every.setdefault(name, []).append(value)
        return AskedFields({name: values[-1] for name, values in every.items()} | named, lists=every)
    body = await request.body()
    if not body.strip():
        return AskedFields(dict(request.query_params) | named)
    try:
        fields = _read_json(body)
        if isinstance(fields, str):  # clients of long ago encoded it twice
            fields = _read_json(fields)
    except (ValueError, RecursionError) as error:
        raise invalid(_NO_OBJECT) from error
    if not isinstance(fields, dict):
        raise invalid(_NO_OBJECT)
    return AskedFields(fields | named, len(body))


Asked = Annotated[AskedFields, Depends(read_asked)]

"""Models that a command reads without pydantic hold and send what pydantic's own do."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

import easel.wire
from easel.wire.model import Answer, Page, Request

READ = """
import json, sys
from importlib import import_module
from easel.wire import light
assert light.choose()
def plainly(value):
    return json.loads(json.dumps(value), parse_constant=str)
found = {}
for name, samples in json.load(sys.stdin).items():
    module, _, model = name.partition(":")
    kind = getattr(import_module(module), model)
    for text in samples:
        read = kind.model_validate_json(text)
        again = kind.model_validate(json.loads(read.model_dump_json()))
        assert plainly(again.model_dump(mode="json")) == plainly(read.model_dump(mode="json")), name
        both = [read.model_dump(mode="json", exclude_unset=unset) for unset in (False, True)]
        found.setdefault(name, []).append(both)
assert "pydantic" not in sys.modules
print(json.dumps(found))
"""
OTHERS = {f"easel.wire.{name}" for name in ("open_inference", "sign_on", "worker", "model", "light")}
"""Modules that no light command uses, or that hold no model of their own."""


def plainly(value: Any) -> Any:
    """The value as JSON holds it, with what is no number as text: NaN is not equal to itself."""
    return json.loads(json.dumps(value), parse_constant=str)


def models() -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    for module in pkgutil.iter_modules(easel.wire.__path__, "easel.wire."):
        if module.name in OTHERS:
            continue
        for name, kind in vars(import_module(module.name)).items():
            if (
                isinstance(kind, type)
                and issubclass(kind, Answer | Request)
                and kind.__module__ == module.name
            ):
                found[f"{module.name}:{name}"] = kind
    return found


def sample(schema: dict[str, Any], parts: dict[str, Any], full: bool) -> Any:
    """A value that the schema allows: with everything in it, or with as little as may be."""
    if "$ref" in schema:
        return sample(parts[schema["$ref"].rpartition("/")[2]], parts, full)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if full and schema.get("examples"):
        return schema["examples"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0 if full else -1], parts, full)
    if schema.get("examples"):
        return schema["examples"][0]
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        needed = schema.get("required", ())
        return {
            name: sample(each, parts, full)
            for name, each in schema["properties"].items()
            if full or name in needed
        }
    if kind == "object":
        inner = schema.get("additionalProperties")
        name = schema.get("propertyNames", {}).get("const", "key")
        return {name: sample(inner, parts, full)} if isinstance(inner, dict) else {"a": "b"}
    if kind == "array":
        few = [sample(schema.get("items", {}), parts, full)]
        least = int(schema.get("minItems", 0))
        return few * max(1, least) if full or least else []
    if kind == "number":
        return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    if kind == "integer":
        return schema.get("minimum", 2)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if kind == "string" and schema.get("format") == "date-time":
        return "2026-11-16T09:30:00.250000Z"
    return "abcdef"[: schema.get("maxLength", 6)] if kind == "string" else {"any": ["thing", 1.5]}


@pytest.fixture(scope="module")
def samples() -> dict[str, list[str]]:
    made = {}
    for name, kind in models().items():
        schema = kind.model_json_schema()
        both = [sample(schema, schema.get("$defs", {}), full) for full in (True, False)]
        made[name] = [json.dumps(each) for each in both]
    return made


def test_light_models_hold_what_pydantics_hold(samples: dict[str, list[str]]) -> None:
    assert len(samples) > 150
    done = subprocess.run(
        [sys.executable, "-c", READ], input=json.dumps(samples), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    light = json.loads(done.stdout)
    for name, kind in models().items():
        for text, (whole, given) in zip(samples[name], light[name], strict=True):
            read = kind.model_validate_json(text)
            assert plainly(whole) == plainly(read.model_dump(mode="json")), name
            unset = read.model_dump(mode="json", exclude_unset=True)
            assert plainly(given) == plainly(unset), name


def test_what_is_missing_or_unknown_is_refused_and_pages_read_their_items() -> None:
    code = """
from easel.wire import light
light.choose()
from easel.wire.identity import CreateProject, Project
from easel.wire.model import Page, ValidationError
for fields in ({}, {"name": "a", "nane": "b"}):
    try:
        CreateProject(**fields)
    except ValidationError as error:
        print(error.errors()[0]["loc"], error.errors()[0]["msg"])
page = Page[Project].model_validate({"items": [{"name": "a", "id": "1", "description": "", "created_at":
    "2026-11-16T09:30:00Z", "archived_at": None, "owner": None}], "next_cursor": "x", "later": 1})
print(type(page.items[0]).__name__, page.items[0].created_at.year, page.next_cursor)
try:
    page.next_cursor = "y"
except AttributeError as error:
    print("frozen" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "('name',) Field required",
        "('nane',) Extra inputs are not permitted",
        "Project 2026 x",
        "True",
    ], done.stderr


def test_it_is_too_late_once_a_model_is_there() -> None:
    from easel.wire import light

    assert Page is not None
    assert not light.choose()
    assert not light.is_chosen()


def test_a_frozen_value_inside_a_model_is_sent_and_read() -> None:
    """`easel learn` sends how columns are written; light models are chosen in a process of their own."""
    script = (
        "from easel.wire import light; assert light.choose()\n"
        "from easel.declare.styles import ColumnStyle\n"
        "from easel.wire.app import FeedPairs\n"
        "sent = FeedPairs(pairs=[], styles={'input.age': ColumnStyle(unit='kg')}).model_dump_json()\n"
        'newer = sent.replace(\'"unit"\', \'"of a later release":1,"unit"\')\n'
        "assert newer != sent\n"
        "for told in (sent, newer):\n"
        "    assert FeedPairs.model_validate_json(told).styles == {'input.age': ColumnStyle(unit='kg')}, told\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

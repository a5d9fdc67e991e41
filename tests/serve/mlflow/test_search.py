"""`search_runs` tells of each run what `get_run` tells, on each database: PostgreSQL writes the answer itself."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serve.conftest import World
from tests.serve.mlflow.test_api import get, metric, new_run, post


def in_order(run: dict[str, Any]) -> dict[str, Any]:
    """The lists of what was logged, by key: their order means nothing."""
    data = {name: sorted(each, key=lambda one: str(one["key"])) for name, each in run["data"].items()}
    return {**run, "data": data}


def test_a_search_tells_of_each_run_what_getting_it_tells(either_world: World) -> None:
    world = either_world
    bare, full, used = new_run(world), new_run(world, run_name='it\'s "ours" ü'), new_run(world)
    points = [metric("loss", 0.1, 3, 5), metric("tiny", 5e-324), metric("large", 1e300), metric("whole", 7)]
    points += [
        metric("nan", "NaN"),
        metric("up", "Infinity"),
        metric("down", "-Infinity"),
        metric("a/b c", -0.0),
    ]
    params = [
        {"key": "lr", "value": "0.1"},
        {"key": "long", "value": "x" * 900},
        {"key": "empty", "value": ""},
    ]
    params += [{"key": "quoted", "value": 'say "value" : null \\ \n'}]
    tags = [
        {"key": "param.lr", "value": "a tag"},
        {"key": "tag.odd", "value": "ü"},
        {"key": "paramour", "value": "x"},
    ]
    tags += [{"key": "mlflow.user", "value": "ann"}, {"key": "mlflow.note.content", "value": "y" * 700}]
    post(world, "runs/log-batch", {"run_id": full, "metrics": points, "params": params, "tags": tags})
    dataset = {"name": "d", "digest": "1", "source_type": "local", "source": "here"}
    post(world, "runs/log-inputs", {"run_id": used, "datasets": [{"dataset": dataset, "tags": []}]})
    post(world, "runs/outputs", {"run_id": used, "models": [{"model_id": "m-1", "step": 2}]})
    body = {"name": "train", "run": {"kind": "command", "argv": ["true"]}, "tags": {"model": "tree"}}
    job = world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=body).json()["id"]
    tagged = {"kind": "job", "ref": bare, "tags": {"score": 0.5}}
    assert world.call("astro-member", "POST", "/api/v1/projects/astro/tags", json=tagged).status_code == 200
    plain = new_run(world, "astro-admin")
    found = post(world, "runs/search", {"experiment_ids": ["0"]})["runs"]
    assert {run["info"]["run_id"] for run in found} == {bare, full, used, job, plain}
    for run in found:
        assert in_order(run) == in_order(get(world, "runs/get", run_id=run["info"]["run_id"])["run"])
    shown = {run["info"]["run_id"]: run for run in found}
    values = {each["key"]: each["value"] for each in shown[full]["data"]["metrics"]}
    assert values == {
        "loss": 0.1,
        "tiny": 5e-324,
        "large": 1e300,
        "whole": 7,
        "nan": "NaN",
        "up": 1.7976931348623157e308,
        "down": -1.7976931348623157e308,
        "a/b c": 0.0,
    }
    assert {each["key"] for each in shown[full]["data"]["tags"]} >= {"param.lr", "tag.odd", "paramour"}
    assert shown[full]["info"]["user_id"] == "ann"
    assert shown[plain]["info"]["user_id"] == "astro-admin"


@pytest.mark.parametrize("length", [499, 500, 501])
def test_values_of_any_length_are_found_by_all_of_them(either_world: World, length: int) -> None:
    """A long value is kept beside its first 500 characters, and only the index is asked for shorter ones."""
    one, two = new_run(either_world), new_run(either_world)
    text = "v" * length
    post(either_world, "runs/log-parameter", {"run_id": one, "key": "k", "value": text})
    post(either_world, "runs/log-parameter", {"run_id": two, "key": "k", "value": text + "more"})
    found = post(either_world, "runs/search", {"experiment_ids": ["0"], "filter": f"params.k = '{text}'"})
    assert [run["info"]["run_id"] for run in found["runs"]] == [one]

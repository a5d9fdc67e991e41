"""`search_runs` tells of each run what `get_run` tells, on each database: PostgreSQL writes the answer itself."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text
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


def test_a_series_that_a_server_of_an_older_release_logs_is_found_too(either_world: World) -> None:
    """Its release does not know the number of the run's artifact (schema 0036): the database fills it in."""
    run = new_run(either_world)
    columns = "job_id, attempt, name, closed, open, project_id, last_step, last_at, last"
    with either_world.app.state.easel.store.write() as tx:
        asked = text(
            f"INSERT INTO job_series ({columns}) SELECT id, 1, 'old', 0, 1, project_id, 0, 1000, 0.5"
            " FROM jobs WHERE id = :run"
        )
        tx.execute(asked, {"run": run})
    body = {"experiment_ids": ["0"], "filter": "metrics.old > 0.4", "order_by": ["metrics.old DESC"]}
    assert [found["info"]["run_id"] for found in post(either_world, "runs/search", body)["runs"]] == [run]


FILTERS: dict[str, set[int]] = {
    "": {0, 1, 2, 3, 4, 5},
    "metrics.m > 0": {0, 1},
    "metrics.m < 0": {3, 5},
    "metrics.m = 1": {0},
    "params.p = 'a'": {0, 5},
    "params.p != 'a'": {1, 2, 3},
    "params.p ILIKE 'A'": {0, 2, 5},
    "params.p LIKE 'x%y'": {3},
    "params.p IS NULL": {4},
    "tags.`t.x` IS NOT NULL": {0, 1, 2, 3, 5},
    "tags.`t.x` ILIKE 'P_a'": {0, 2},
    "tags.`t.x` = 'zz' AND metrics.m < 0 AND params.p = 'a'": {5},
    "attributes.status = 'RUNNING'": {0, 1, 2, 3, 4, 5},
    "attributes.status != 'RUNNING'": set(),
    "attributes.status LIKE 'RUN%'": {0, 1, 2, 3, 4, 5},
    "attributes.start_time >= 5 AND attributes.start_time < 9": {4, 5},
    "attributes.run_name = 'r4'": {4},
    "attributes.run_id IN ('{1}', '{3}')": {1, 3},
    "attributes.run_id NOT IN ('{1}')": {0, 2, 3, 4, 5},
    "dataset.name IN ('d', 'e') AND dataset.context ILIKE 'TRAIN'": {4},
    "attributes.artifact_uri LIKE '%{2}/artifacts'": {2},
}
ORDERS: dict[str, list[int]] = {
    "metrics.m ASC": [3, 5, 0, 1, 2, 4],
    "metrics.m DESC": [1, 0, 5, 3, 2, 4],
    "attributes.start_time ASC": [2, 1, 0, 4, 5, 3],
    "attributes.run_name DESC": [5, 4, 3, 2, 1, 0],
    "params.p ASC": [],
}


def test_every_kind_of_comparison_and_order_on_each_database(either_world: World) -> None:
    world = either_world
    runs = [
        (1, "a", "p_a", 3),
        ("Infinity", "b", "p_b", 2),
        ("NaN", "A", "P_a", 1),
        ("-Infinity", "x%y", "p_", 9),
        (None, None, None, 5),
        (-1.5, "a", "zz", 5),
    ]
    made = []
    for number, (value, param, tag, start) in enumerate(runs):
        run = new_run(world, run_name=f"r{number}", start_time=start)
        made.append(run)
        body: dict[str, Any] = {"run_id": run}
        if value is not None:
            body["metrics"] = [metric("m", value)]
            body["params"] = [{"key": "p", "value": param}]
            body["tags"] = [{"key": "t.x", "value": tag}]
        post(world, "runs/log-batch", body)
    context = {"key": "mlflow.data.context", "value": "train"}
    dataset = {"name": "d", "digest": "1", "source_type": "local", "source": "here"}
    post(world, "runs/log-inputs", {"run_id": made[4], "datasets": [{"dataset": dataset, "tags": [context]}]})
    other = post(world, "experiments/create", {"name": "other"})["experiment_id"]
    apart = post(world, "runs/create", {"experiment_id": other})["run"]["info"]["run_id"]

    def found(**asked: Any) -> list[int]:
        page = post(world, "runs/search", {"experiment_ids": ["0"], **asked})
        return [made.index(run["info"]["run_id"]) for run in page.get("runs", [])]

    for text_, expected in FILTERS.items():
        assert set(found(filter=text_.format(*made))) == expected, text_
    for order, numbers in ORDERS.items():
        assert found(order_by=[order])[: len(numbers)] == numbers, order
        assert found(order_by=[order], max_results=2) == found(order_by=[order])[:2], order
    assert found(filter="metrics.m > -5", order_by=["params.p ASC", "metrics.m DESC"])[-2:] == [5, 1]
    both = post(
        world, "runs/search", {"experiment_ids": ["0", other], "filter": "attributes.status = 'RUNNING'"}
    )
    assert {run["info"]["run_id"] for run in both["runs"]} == {*made, apart}

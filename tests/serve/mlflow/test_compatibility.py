"""What MLflow's own server tests ask for beside what the stock client's script does, and values of every size."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import World, populated
from tests.serve.mlflow.test_api import BASE, FILES, get, new_run, post

from easel.serve.app import api_routes
from easel.store.engine import Store

pytestmark = pytest.mark.postgres


def new_model(world: World, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = post(world, "logged-models", {"experiment_id": "0", **more})["model"]["info"]
    return made


def names(found: dict[str, Any]) -> list[str]:
    return [each["info"]["name"] for each in found.get("models", [])]


def test_a_model_whose_upload_failed_says_so(either_world: World) -> None:
    model = new_model(either_world)["model_id"]
    for status in ("LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED"):
        answer = either_world.call(
            "astro-member", "PATCH", f"{BASE}logged-models/{model}", json={"status": status}
        )
        assert answer.json()["model"]["info"]["status"] == status


def test_models_are_found_by_the_data_on_which_they_were_measured(world: World) -> None:
    measured, _other = (new_model(world, name=name) for name in ("measured", "other"))
    point = {"key": "m", "value": 1, "timestamp": 1, "dataset_name": "d", "dataset_digest": "1"}
    post(world, "runs/log-metric", {"run_id": new_run(world), "model_id": measured["model_id"], **point})
    for wanted, found in (
        ({"dataset_name": "d"}, ["measured"]),
        ({"dataset_name": "d", "dataset_digest": "1"}, ["measured"]),
        ({"dataset_name": "d", "dataset_digest": "2"}, []),
    ):
        asked = {"experiment_ids": ["0"], "datasets": [wanted]}
        assert names(post(world, "logged-models/search", asked)) == found
    post(world, "logged-models/search", {"experiment_ids": ["0"], "datasets": [{}]}, status=400)


def test_a_logged_model_names_the_versions_that_were_registered_of_it(world: World) -> None:
    model = new_model(world)
    post(world, "registered-models/create", {"name": "flora"})
    asked = {"name": "flora", "source": model["artifact_uri"], "model_id": model["model_id"]}
    post(world, "model-versions/create", asked)
    post(world, "model-versions/create", asked)
    found = get(world, f"logged-models/{model['model_id']}")["model"]["info"]["tags"]
    assert {tag["key"]: json.loads(tag["value"]) for tag in found} == {
        "mlflow.modelVersions": [{"name": "flora", "version": 1}, {"name": "flora", "version": 2}]
    }
    post(world, "model-versions/create", {**asked, "model_id": "m-" + "0" * 32}, status=404)


def test_experiments_come_newest_first_whatever_changed_last(world: World) -> None:
    first = post(world, "experiments/create", {"name": "first"})["experiment_id"]
    post(world, "experiments/create", {"name": "second"})
    post(world, "experiments/delete", {"experiment_id": first})
    found = post(world, "experiments/search", {"view_type": "ALL"})["experiments"]
    assert [each["name"] for each in found] == ["second", "first", "Default"]


def test_files_are_read_through_the_version_or_the_model_that_has_them(world: World) -> None:
    model = new_model(world)["model_id"]
    for path in ("a.txt", f"0/models/{model}/artifacts/a.txt"):
        assert world.call("astro-member", "PUT", f"{FILES}/{path}", content=path.encode()).status_code == 200
    post(world, "registered-models/create", {"name": "flora"})
    post(world, "model-versions/create", {"name": "flora", "source": "mlflow-artifacts:"})
    of_version = {"name": "flora", "version": "1", "path": "a.txt"}
    answer = world.call("astro-member", "GET", "/mlflow/astro/model-versions/get-artifact", params=of_version)
    assert answer.text == "a.txt"
    there = f"{BASE}logged-models/{model}/artifacts/files"
    answer = world.call("astro-member", "GET", there, params={"artifact_file_path": "a.txt"})
    assert answer.text == f"0/models/{model}/artifacts/a.txt"
    for path, status in (("../a.txt", 400), ("none.txt", 404), ("", 400)):
        answer = world.call("astro-member", "GET", there, params={"artifact_file_path": path})
        assert answer.status_code == status
    answer = world.call("bio-member", "GET", there, params={"artifact_file_path": "a.txt"})
    assert answer.status_code in (403, 404)


FIELDS = (
    *("name", "new_name", "key", "value", "run_id", "experiment_id", "source", "run_link", "description"),
    *(
        "model_id",
        "model_type",
        "source_run_id",
        "status",
        "stage",
        "alias",
        "version",
        "user_id",
        "run_name",
    ),
    *("artifact_location", "dataset_name", "dataset_digest", "filter"),
)


@pytest.fixture
def postgres_world(postgres_store: Store, tmp_path: Path) -> Iterator[World]:
    yield from populated(postgres_store, tmp_path)


@pytest.mark.slow
def test_no_long_value_is_answered_with_5xx(postgres_world: World) -> None:
    """A column has a length; PostgreSQL heeds it."""
    world = postgres_world
    model, run = new_model(world), new_run(world)
    post(world, "registered-models/create", {"name": "flora"})
    post(world, "model-versions/create", {"name": "flora", "source": "runs:/x/y"})
    experiment = post(world, "experiments/create", {"name": "e"})["experiment_id"]
    valid = {
        "run_id": run,
        "experiment_id": experiment,
        "experiment_ids": [experiment],
        "model_id": model["model_id"],
        "name": "flora",
        "version": "1",
        "key": "k",
        "value": "1",
        "timestamp": 1,
        "source": "runs:/x/y",
    }
    wrong = []
    for route in api_routes(world.app):
        if not route.path.startswith("/mlflow/{project}/api/") or "artifacts/" in route.path:
            continue
        path = route.path.replace("{project}", "astro").replace("{model_id}", model["model_id"])
        for method, field in itertools.product({"POST", "PATCH"} & (route.methods or set()), FIELDS):
            if any(word in path for word in ("delete", "search", "traces", "latest")):
                continue
            long = "é" * 300 if field in ("key", "name") else "é" * 20_000
            status = world.call("astro-member", method, path, json={**valid, field: long}).status_code
            if status >= 500:
                wrong.append(f"{method} {path} {field}: {status}")
    dataset = {"name": "é" * 900, "digest": "é" * 900, "source_type": "é" * 900, "source": "é" * 90_000}
    for body in (
        {"datasets": [{"dataset": dataset, "tags": [{"key": "é" * 900, "value": "é" * 900}]}]},
        {"models": [{"model_id": "é" * 900}]},
    ):
        answer = world.call("astro-member", "POST", f"{BASE}runs/log-inputs", json={"run_id": run, **body})
        if answer.status_code >= 500:
            wrong.append(f"log-inputs {list(body)}: {answer.status_code}")
    assert wrong == []


def test_a_point_that_is_sent_again_is_kept_once(either_world: World) -> None:
    """A client whose answer got lost sends the same once more."""
    run = new_run(either_world)
    point = {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 7, "step": 3}
    for _ in range(3):
        post(either_world, "runs/log-metric", point)
    found = get(either_world, "metrics/get-history", run_id=run, metric_key="loss")["metrics"]
    assert found == [{"key": "loss", "value": 0.5, "timestamp": 7, "step": 3}]


def test_who_may_read_is_not_remembered_as_who_may_write(world: World) -> None:
    """The same address read and then written to within a moment; the caller of the first is remembered."""
    post(world, "registered-models/create", {"name": "flora"})
    post(world, "model-versions/create", {"name": "flora", "source": "runs:/x/y"})
    alias = {"name": "flora", "alias": "champion", "version": "1"}
    post(world, "registered-models/alias", alias)
    address = f"{BASE}registered-models/alias"
    answer = world.call("astro-admin", "PATCH", "/api/v1/projects/astro", json={"archived": True})
    assert answer.status_code == 200, answer.text
    assert world.call("astro-member", "GET", address, params=alias).status_code == 200
    assert world.call("astro-member", "DELETE", address, json=alias).status_code >= 400
    assert world.call("astro-member", "GET", address, params=alias).status_code == 200


def test_addresses_past_the_server_are_refused_as_mlflow_does_for_files_that_it_passes_on(
    world: World,
) -> None:
    run_id = new_run(world)
    for what in ("upload", "download"):
        told = post(world, f"artifacts/presigned-{what}-url", {"run_id": run_id, "path": "a"}, status=400)
        assert told["error_code"] == "INVALID_PARAMETER_VALUE"
        assert told["message"].startswith(f"Presigned {what} is not supported for")
        hostile = {"run_id": run_id, "path": "../a"}
        assert (
            post(world, f"artifacts/presigned-{what}-url", hostile, status=400)["message"] == "Invalid path"
        )
        post(world, f"artifacts/presigned-{what}-url", {"run_id": "job_none", "path": "a"}, status=404)

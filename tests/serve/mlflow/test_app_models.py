"""The models of an app are versions of a registered model, and belong to the app."""

from __future__ import annotations

from tests.serve.conftest import World
from tests.serve.mlflow.test_api import FILES, get, new_run, post

from easel.ids import AppId, JobId
from easel.store import app_trials

PROGRAM = "input: {size: number}\noutput: {sold: [no, yes]}"


def found_model(world: World, app_id: str, quality: float) -> str:
    """A trial that ended with a model: files in the output set of a run, as a trial's are in its job's."""
    run_id = new_run(world)
    path = f"{FILES}/0/{run_id}/artifacts/abc/model/MLmodel"
    assert world.call("astro-member", "PUT", path, content=f"model of {run_id}".encode()).status_code == 200
    post(world, "runs/update", {"run_id": run_id, "status": "FINISHED"})
    candidate = {"family": "linear", "settings": {}, "cost_s": 1.0, "promise": 0.5}
    with world.app.state.easel.store.write() as tx:
        decision = {"reasons": {"acquisition": 1.0}}
        app_trials.add(tx, [AppId(app_id)], JobId(run_id), "linear", candidate, decision, 40)
        app_trials.end(tx, JobId(run_id), quality, 1.0, f"{run_id}-output:1", 0)
    return run_id


def test_the_models_of_an_app_are_versions_and_the_one_that_answers_is_champion(world: World) -> None:
    made = world.call(
        "astro-member", "POST", "/api/v1/projects/astro/apps", json={"name": "shop", "program": PROGRAM}
    )
    assert made.status_code == 201, made.text
    get(world, "registered-models/get", status=404, name="shop")
    good, worse = (found_model(world, made.json()["id"], quality) for quality in (0.9, 0.7))
    model = get(world, "registered-models/get", name="shop")["registered_model"]
    assert model["aliases"] == [{"alias": "champion", "version": "1"}]
    champion = get(world, "registered-models/alias", name="shop", alias="champion")["model_version"]
    assert (champion["version"], champion["run_id"]) == ("1", good)
    versions = get(world, "model-versions/search", filter="name = 'shop'")["model_versions"]
    assert {each["version"]: each["run_id"] for each in versions} == {"1": good, "2": worse}
    assert [each["name"] for each in get(world, "registered-models/search")["registered_models"]] == ["shop"]
    where = get(world, "model-versions/get-download-uri", name="shop", version="1")["artifact_uri"]
    path = where.removeprefix("mlflow-artifacts:/")
    listed = world.call("astro-member", "GET", FILES, params={"path": path}).json()["files"]
    assert [each["path"] for each in listed] == ["MLmodel"]
    file = f"{FILES}/{path}/MLmodel"
    assert world.call("astro-member", "GET", file).text == f"model of {good}"
    assert world.call("astro-member", "PUT", file, content=b"other").status_code == 403
    assert world.call("astro-member", "DELETE", file).status_code == 403
    elsewhere = file.replace("/mlflow/astro/", "/mlflow/bio/")
    assert world.call("bio-admin", "GET", elsewhere).status_code == 404
    for path, body in (
        ("registered-models/alias", {"name": "shop", "alias": "mine", "version": "1"}),
        ("registered-models/set-tag", {"name": "shop", "key": "a", "value": "b"}),
        ("registered-models/rename", {"name": "shop", "new_name": "other"}),
        ("model-versions/set-tag", {"name": "shop", "version": "1", "key": "a", "value": "b"}),
        ("model-versions/transition-stage", {"name": "shop", "version": "1", "stage": "Staging"}),
        ("model-versions/create", {"name": "shop", "source": f"runs:/{good}/x", "run_id": good}),
    ):
        assert post(world, path, body, status=400)["error_code"] == "INVALID_PARAMETER_VALUE", path
    taken = post(world, "registered-models/create", {"name": "shop"}, status=400)
    assert taken["error_code"] == "RESOURCE_ALREADY_EXISTS"

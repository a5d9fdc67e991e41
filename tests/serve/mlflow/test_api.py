"""MLflow's API: who may, what is refused, and that one truth stands behind both faces."""

from __future__ import annotations

import base64
import itertools
import threading
from typing import Any

import pytest
from sqlalchemy import update
from tests.serve.conftest import World

from easel.errors import InvalidInput
from easel.flow.authenticate import Level
from easel.flow.jobs.orders import OrderLimits, order_of
from easel.flow.jobs.people import Owners
from easel.flow.jobs.tracking_tokens import JobTracking
from easel.records.lake import Kind
from easel.run.secret_store import SecretStore
from easel.serve.app import api_routes, declared_level
from easel.serve.mlflow.artifacts import keep_upload
from easel.store import job_queues, jobs, runs
from easel.store.lake.tags import NewTag, put_all
from easel.store.schema.jobs import jobs as job_table

BASE = "/mlflow/astro/api/2.0/mlflow/"
FILES = "/mlflow/astro/api/2.0/mlflow-artifacts/artifacts"


def post(world: World, path: str, body: Any, who: str = "astro-member", status: int = 200) -> Any:
    answer = world.call(who, "POST", BASE + path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def get(world: World, endpoint: str, /, who: str = "astro-member", status: int = 200, **params: Any) -> Any:
    answer = world.call(who, "GET", BASE + endpoint, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


def new_run(world: World, who: str = "astro-member", **more: Any) -> str:
    found: str = post(world, "runs/create", {"start_time": 1, **more}, who)["run"]["info"]["run_id"]
    return found


def metric(key: str, value: Any, step: int = 0, timestamp: int = 1) -> dict[str, Any]:
    return {"key": key, "value": value, "step": step, "timestamp": timestamp}


def test_the_token_may_be_the_password_of_basic(world: World) -> None:
    login = base64.b64encode(f"anybody:{world.tokens['astro-member']}".encode()).decode()
    answer = world.http.get(
        BASE + "experiments/get?experiment_id=0", headers={"Authorization": f"Basic {login}"}
    )
    assert answer.json()["experiment"]["name"] == "Default"


def test_wrong_tokens_are_refused_and_never_told_to_wait(world: World) -> None:
    for _ in range(10):  # more than the limit of failed log-ins
        answer = world.http.get(BASE + "experiments/get", headers={"Authorization": "Bearer wrong"})
        assert answer.status_code in (401, 403)
        assert answer.json()["error_code"] in ("UNAUTHENTICATED", "PERMISSION_DENIED")


def test_another_project_s_runs_models_and_files_do_not_exist(world: World) -> None:
    run_id = new_run(world)
    assert (
        world.call("astro-member", "PUT", f"{FILES}/0/{run_id}/artifacts/a.txt", content=b"x").status_code
        == 200
    )
    post(world, "registered-models/create", {"name": "m"})
    foreign = "/mlflow/bio/api/2.0/"
    for path, params in (
        ("mlflow/runs/get", {"run_id": run_id}),
        ("mlflow/artifacts/list", {"run_id": run_id}),
        ("mlflow/registered-models/get", {"name": "m"}),
        (f"mlflow-artifacts/artifacts/0/{run_id}/artifacts/a.txt", {}),
    ):
        answer = world.call("bio-admin", "GET", foreign + path, params=params)
        assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    found = world.call(
        "bio-admin", "POST", foreign + "mlflow/runs/search", json={"experiment_ids": ["0"]}
    ).json()
    assert found == {}
    assert world.call("bio-admin", "GET", BASE + "runs/get", params={"run_id": run_id}).status_code == 404


def test_only_its_owner_and_admins_write_to_a_run_but_everybody_tags_it(world: World) -> None:
    run_id = new_run(world, "astro-admin")
    body = {"run_id": run_id, **metric("acc", 1.0)}
    assert post(world, "runs/log-metric", body, status=403)["error_code"] == "PERMISSION_DENIED"
    post(world, "runs/set-tag", {"run_id": run_id, "key": "seen", "value": "yes"})
    file = f"{FILES}/0/{run_id}/artifacts/a.txt"
    assert world.call("astro-member", "PUT", file, content=b"x").status_code == 403


def test_a_free_run_is_a_job_that_no_queue_has(world: World) -> None:
    run_id = new_run(world, run_name="rose")
    post(world, "runs/log-batch", {"run_id": run_id, "metrics": [metric("loss", 0.5, 3)]})
    post(world, "runs/log-parameter", {"run_id": run_id, "key": "lr", "value": "0.1"})
    job = world.call("astro-member", "GET", f"/api/v1/projects/astro/jobs/{run_id}").json()
    assert (job["name"], job["kind"], job["state"]) == ("rose", "free", "running")
    series = world.call("astro-member", "GET", f"/api/v1/projects/astro/jobs/{run_id}/metrics/loss").json()
    assert [(p["step"], p["value"]) for p in series["points"]] == [(3, 0.5)]
    found = world.call(
        "astro-member",
        "POST",
        "/api/v1/projects/astro/find",
        json={"kind": "job", "query": "param.lr > 0.05"},
    ).json()
    assert [(each["name"], each["tags"]["param.lr"]) for each in found["items"]] == [(run_id, "0.1")]
    change = {"kind": "job", "ref": run_id, "tags": {"param.lr": "7"}}
    assert world.call("astro-member", "POST", "/api/v1/projects/astro/tags", json=change).status_code == 422
    store = world.app.state.easel.store
    with store.read() as tx:
        assert jobs.active(tx) == []
        assert list(job_queues.lines(tx, 8, 8)) == []
    killed = world.call("astro-member", "POST", f"/api/v1/projects/astro/jobs/{run_id}/kill", json={}).json()
    assert killed["state"] == "killed"
    again = world.call("astro-member", "POST", f"/api/v1/projects/astro/jobs/{run_id}/rerun", json={})
    assert again.status_code == 422
    assert get(world, "runs/get", run_id=run_id)["run"]["info"]["status"] == "KILLED"


def test_artifacts_become_versions_of_the_output_set_and_models_trace_back_to_the_data(world: World) -> None:
    run_id = new_run(world)
    dataset = {"name": "flowers", "digest": "d1", "source_type": "local", "source": "here"}
    post(world, "runs/log-inputs", {"run_id": run_id, "datasets": [{"dataset": dataset, "tags": []}]})
    for text in (b"one", b"two"):
        put = world.call("astro-member", "PUT", f"{FILES}/0/{run_id}/artifacts/model/w.bin", content=text)
        assert put.status_code == 200
    post(world, "runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": 5})
    job = world.call("astro-member", "GET", f"/api/v1/projects/astro/jobs/{run_id}").json()
    assert job["output_set"] == f"{run_id}-output:1"
    post(world, "registered-models/create", {"name": 'it\'s "mine"'})
    version = {"name": 'it\'s "mine"', "source": f"runs:/{run_id}/model", "run_id": run_id}
    assert post(world, "model-versions/create", version)["model_version"]["version"] == "1"
    sets = world.call("astro-member", "GET", "/api/v1/projects/astro/filesets").json()["items"]
    names = {each["name"] for each in sets}
    made = next(name for name in names if name.startswith("model-it-s-mine"))
    assert "dataset-flowers-d1" in names
    traced = world.call("astro-member", "GET", "/api/v1/projects/astro/lineage", params={"ref": made})
    assert traced.status_code == 200
    assert "dataset-flowers-d1" in traced.text
    assert world.call("astro-member", "GET", f"{FILES}/0/{run_id}/artifacts/model/w.bin").content == b"two"


@pytest.mark.parametrize(
    "path",
    [
        "../up",
        "a/../../up",
        "%2e%2e/up",
        "%252e%252e/up",
        "/etc/passwd",
        "a\\b",
        "C:/x",
        "a%00b",
        "..%2f..%2fup",
    ],
)
def test_hostile_paths_are_refused(world: World, path: str) -> None:
    run_id = new_run(world)
    answer = get(world, "artifacts/list", status=400, run_id=run_id, path=path)
    assert answer == {"error_code": "INVALID_PARAMETER_VALUE", "message": "Invalid path"}
    quoted = path.replace("%", "%25").replace("\\", "%5C").replace("/", "%2F")
    put = world.call("astro-member", "PUT", f"{FILES}/0/{run_id}/artifacts/{quoted}", content=b"x")
    if path in ("/etc/passwd", "C:/x"):  # behind the run's own path these are names like others
        assert put.status_code == 200
    else:
        assert put.status_code in (400, 404), put.text
    top = world.call("astro-member", "GET", "/api/v1/projects/astro/files", params={"ref": "/"}).json()
    assert {each["path"].strip("/") for each in top["items"]} <= {f"{run_id}-output"}


def test_an_upload_that_is_cut_off_leaves_nothing(world: World) -> None:
    run_id = new_run(world)
    state = world.app.state.easel

    def cut() -> Any:
        yield b"half"
        raise InvalidInput("the connection broke off: send the part again")

    from easel.flow.authenticate import Secret, authenticate

    caller = authenticate(state.store, Secret(world.tokens["astro-member"], False), Level.MEMBER, "astro")
    with pytest.raises(InvalidInput):
        keep_upload(state, caller, f"0/{run_id}/artifacts/a.bin", cut())
    assert get(world, "artifacts/list", run_id=run_id)["files"] == []
    assert list((state.settings.folder / "mlflow-parts").iterdir()) == []


def test_a_large_file_comes_in_parts_and_goes_in_ranges(world: World) -> None:
    run_id = new_run(world)
    folder = f"/mlflow/astro/api/2.0/mlflow-artifacts/mpu/create/0/{run_id}/artifacts/deep"
    made = world.call("astro-member", "POST", folder, json={"path": "/home/a/big.bin", "num_parts": 2}).json()
    for part, data in zip(made["credentials"], (b"first ", b"second"), strict=True):
        sent = world.http.put(part["url"], content=data, headers=part["headers"])
        assert sent.status_code == 200
        assert sent.headers["etag"]
    done = {
        "path": "big.bin",
        "upload_id": made["upload_id"],
        "parts": [{"part_number": 1}, {"part_number": 2}],
    }
    complete = world.call("astro-member", "POST", folder.replace("create", "complete"), json=done)
    assert complete.status_code == 200, complete.text
    signed = world.call(
        "astro-member",
        "GET",
        f"/mlflow/astro/api/2.0/mlflow-artifacts/presigned/0/{run_id}/artifacts/deep/big.bin",
    ).json()
    assert signed.get("file_size") == 12, signed
    part = world.http.get(signed["url"], headers={**signed["headers"], "Range": "bytes=6-11"})
    assert (part.status_code, part.content) == (206, b"second")


def test_two_processes_that_log_to_one_run_lose_nothing(world: World) -> None:
    run_id = new_run(world)

    def log(first: int) -> None:
        for step in range(first, 60, 2):
            batch = {"run_id": run_id, "metrics": [metric("m", step, step), metric("zero", step, 0, step)]}
            post(world, "runs/log-batch", batch)

    threads = [threading.Thread(target=log, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(get(world, "metrics/get-history", run_id=run_id, metric_key="m")["metrics"]) == 60
    assert len(get(world, "metrics/get-history", run_id=run_id, metric_key="zero")["metrics"]) == 60
    last = {m["key"]: m["value"] for m in get(world, "runs/get", run_id=run_id)["run"]["data"]["metrics"]}
    assert last == {"m": 59, "zero": 59}


def test_a_long_history_comes_in_pages_without_gaps(world: World) -> None:
    run_id = new_run(world)
    for start in (0, 400):
        points = [metric("m", i, i // 3, i) for i in range(start, start + 400)]
        post(world, "runs/log-batch", {"run_id": run_id, "metrics": points})
    found: list[int] = []
    asked: dict[str, Any] = {"run_id": run_id, "metric_key": "m", "max_results": 97}
    while True:
        page = get(world, "metrics/get-history", **asked)
        found += [int(point["value"]) for point in page["metrics"]]
        if not page.get("next_page_token"):
            break
        asked["page_token"] = page["next_page_token"]
    assert found == list(range(800))


def test_a_hundred_thousand_params_are_kept_and_found(world: World) -> None:
    """All but the last hundred are written straight to the store: as many requests would say no more."""
    run_id = new_run(world)
    with world.app.state.easel.store.write() as tx:
        record = runs.by_id(tx, run_id)
        assert record is not None
        put_all(
            tx,
            [
                NewTag(record.project_id, record.artifact_id, Kind.JOB, f"{runs.PARAM}p{i}", str(i))
                for i in range(99_900)
            ],
        )
    last = [{"key": f"p{i}", "value": str(i)} for i in range(99_900, 100_000)]
    post(world, "runs/log-batch", {"run_id": run_id, "params": last})
    post(world, "runs/log-batch", {"run_id": run_id, "params": last})
    changed = {"run_id": run_id, "key": "p5", "value": "6"}
    assert post(world, "runs/log-parameter", changed, status=400)["error_code"] == "INVALID_PARAMETER_VALUE"
    assert len(get(world, "runs/get", run_id=run_id)["run"]["data"]["params"]) == 100_000
    for name in ("5", "99999"):
        found = post(world, "runs/search", {"experiment_ids": ["0"], "filter": f"params.p{name} = '{name}'"})
        assert [run["info"]["run_id"] for run in found["runs"]] == [run_id]


@pytest.mark.parametrize("name", ["it's", 'say "yes"', "a b&c=d?e#f", "100%", "ü\u2028"])
def test_a_registered_model_may_have_any_name_without_slash_and_colon(world: World, name: str) -> None:
    post(world, "registered-models/create", {"name": name})
    post(world, "model-versions/create", {"name": name, "source": "mlflow-artifacts:/"})
    post(world, "registered-models/alias", {"name": name, "alias": "champion", "version": "1"})
    assert get(world, "registered-models/get", name=name)["registered_model"]["name"] == name
    found = get(world, "registered-models/alias", name=name, alias="champion")["model_version"]
    assert (found["name"], found["version"]) == (name, "1")
    for refused in (f"{name}/x", f"{name}:1"):
        told = post(world, "registered-models/create", {"name": refused}, status=400)
        assert told["error_code"] == "INVALID_PARAMETER_VALUE"


@pytest.mark.parametrize("name", ["a/b", "a:b", 'say "a/b:c"'])
def test_a_model_s_name_with_slash_or_colon_is_refused_as_mlflow_s_own_server_does(
    world: World, name: str
) -> None:
    """By the words of MLflow 3.17, wherever a model gets its name or a version; nothing of it is kept."""
    post(world, "registered-models/create", {"name": "plain"})
    source = {"name": name, "source": "mlflow-artifacts:/"}
    for told in (
        post(world, "registered-models/create", {"name": name}, status=400),
        post(world, "registered-models/rename", {"name": "plain", "new_name": name}, status=400),
        post(world, "model-versions/create", source, status=400),
    ):
        assert told["error_code"] == "INVALID_PARAMETER_VALUE"
        assert told["message"] == f"Invalid model name '{name}'. Names cannot contain '/' or ':'."
    found = get(world, "registered-models/search")["registered_models"]
    assert [model["name"] for model in found] == ["plain"]


@pytest.mark.parametrize("name", [" ", ".", "..", "..up"])
def test_a_model_s_name_is_neither_empty_nor_a_way_up(world: World, name: str) -> None:
    told = post(world, "registered-models/create", {"name": name}, status=400)
    assert told["error_code"] == "INVALID_PARAMETER_VALUE"


def test_long_values_are_found_by_all_of_them(world: World) -> None:
    one, two = new_run(world), new_run(world)
    long = "x" * 600
    post(world, "runs/log-parameter", {"run_id": one, "key": "k", "value": long + "a"})
    post(world, "runs/log-parameter", {"run_id": two, "key": "k", "value": long + "b"})
    for how in (f"params.k = '{long}a'", "params.k LIKE '%a'"):
        found = post(world, "runs/search", {"experiment_ids": ["0"], "filter": how})
        assert [run["info"]["run_id"] for run in found["runs"]] == [one]


def test_a_run_whose_experiment_is_deleted_takes_nothing_more(world: World) -> None:
    number = post(world, "experiments/create", {"name": "soon gone"})["experiment_id"]
    run_id = new_run(world, experiment_id=number)
    post(world, "experiments/delete", {"experiment_id": number})
    refused = post(world, "runs/log-metric", {"run_id": run_id, **metric("m", 1.0)}, status=400)
    assert refused["error_code"] == "INVALID_PARAMETER_VALUE"
    post(world, "experiments/restore", {"experiment_id": number})
    post(world, "runs/log-metric", {"run_id": run_id, **metric("m", 1.0)})


def test_a_client_that_dies_leaves_a_run_that_can_be_resumed(world: World) -> None:
    run_id = new_run(world)
    post(world, "runs/log-metric", {"run_id": run_id, **metric("m", 1.0)})
    assert get(world, "runs/get", run_id=run_id)["run"]["info"]["status"] == "RUNNING"
    post(world, "runs/update", {"run_id": run_id, "status": "RUNNING"})
    post(world, "runs/log-metric", {"run_id": run_id, **metric("m", 2.0, 1)})
    post(world, "runs/update", {"run_id": run_id, "status": "FINISHED"})
    assert "end_time" in get(world, "runs/get", run_id=run_id)["run"]["info"]


def test_jobs_of_easel_are_found_as_runs_and_their_state_is_easel_s(world: World) -> None:
    body = {"name": "train", "run": {"kind": "command", "argv": ["true"]}, "tags": {"model": "tree"}}
    job = world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=body).json()
    found = post(world, "runs/search", {"experiment_ids": ["0"], "filter": "tags.model = 'tree'"})["runs"]
    assert [run["info"]["run_id"] for run in found] == [job["id"]]
    assert found[0]["info"]["status"] == "SCHEDULED"
    post(world, "runs/update", {"run_id": job["id"], "status": "FINISHED"})
    assert get(world, "runs/get", run_id=job["id"])["run"]["info"]["status"] == "SCHEDULED"


def test_a_job_s_token_opens_its_own_project_while_it_is_active(world: World) -> None:
    body = {
        "name": "train",
        "run": {"kind": "command", "argv": ["true"]},
    }
    job = world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=body).json()
    state = world.app.state.easel
    with state.store.write() as tx:
        tx.execute(update(job_table).where(job_table.c.id == job["id"]).values(state="running", attempt=1))
    with state.store.read() as tx:
        row = jobs.rows(tx, [job["id"]])[job["id"]]
    limits = OrderLimits(
        network_projects=("*",), tracking=JobTracking("https://easel.lab/", state.addresses.signer.key)
    )
    with state.store.read() as tx:
        order = order_of(tx, Owners(tx), row, SecretStore(state.settings.folder / "secrets"), limits)
    assert order.tracking == "https://easel.lab/mlflow/astro"
    token = order.secrets["MLFLOW_TRACKING_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"}
    logged = world.http.post(
        BASE + "runs/log-metric", json={"run_id": job["id"], **metric("acc", 0.5)}, headers=headers
    )
    assert logged.status_code == 200, logged.text
    elsewhere = "/mlflow/bio/api/2.0/mlflow/experiments/get?experiment_id=0"
    assert world.http.get(elsewhere, headers=headers).status_code == 404
    assert world.http.get("/api/v1/projects/astro/jobs", headers=headers).status_code == 401
    assert (
        world.http.get(BASE + "experiments/get", headers={"Authorization": f"Bearer {token}0"}).status_code
        == 401
    )
    with state.store.write() as tx:
        tx.execute(update(job_table).where(job_table.c.id == job["id"]).values(state="finished"))
    assert world.http.get(BASE + "experiments/get?experiment_id=0", headers=headers).status_code == 401


def test_what_is_left_out_lets_clients_go_on_and_prompts_are_kept(world: World) -> None:
    assert get(world, "webhooks") == {"webhooks": []}
    assert post(world, "traces/search", {"locations": []}) == {"traces": []}
    mark = {"key": "mlflow.prompt.is_prompt", "value": "true"}
    text = {"key": "mlflow.prompt.text", "value": "Hi {{name}}"}
    post(world, "registered-models/create", {"name": "greet", "tags": [mark]})
    version = {"name": "greet", "source": "dummy-source", "tags": [mark, text]}
    assert post(world, "model-versions/create", version)["model_version"]["version"] == "1"
    post(world, "model-versions/create", {"name": "greet", "source": "dummy-source"}, status=400)
    assert get(world, "registered-models/search") == {}
    asked = "tags.`mlflow.prompt.is_prompt` = 'true'"
    assert [m["name"] for m in get(world, "registered-models/search", filter=asked)["registered_models"]] == [
        "greet"
    ]


ODD = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"run_id": 31, "experiment_id": [], "name": {}, "experiment_ids": "x", "metrics": 5, "key": null}',
    b'{"run_id": "\\u0000", "experiment_id": "\\ud800", "name": "\\u0000", "key": "\\u0000", "filter": "\\u0000"}',
    b'{"run_id": "job_1", "key": "k", "value": 1e999, "timestamp": 99999999999999999999, "step": 1.5}',
    b'{"experiment_ids": ["99999999999999999999", "-1"], "max_results": -5, "page_token": "%%%", "order_by": [7]}',
    b'{"experiment_id": "99999999999999999999", "name": "x", "version": "99999999999999999999", "alias": "a"}',
]


def test_no_odd_request_is_answered_with_5xx_or_429(world: World) -> None:
    """Clients repeat those for minutes."""
    wrong = []
    for route in api_routes(world.app):
        if not route.path.startswith("/mlflow/") or "ajax" in route.path:
            continue
        assert declared_level(route) is Level.MEMBER
        path = route.path.replace("{project}", "astro").replace("{", "").replace("}", "").replace(":path", "")
        for method, body in itertools.product(route.methods or (), ODD):
            status = world.call("astro-member", method, path, content=body).status_code
            if status >= 500 or status == 429:
                wrong.append(f"{method} {path} {body[:60]!r}: {status}")
    assert wrong == []

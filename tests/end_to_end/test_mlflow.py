"""MLflow's stock client cannot tell Easel from MLflow's own store.

The client is the one of this environment (`mlflow-skinny` of the extra `dev`), and those of EASEL_MLFLOW_PYTHONS:
interpreters of environments with other releases (and `sqlalchemy<2.1`, `alembic`), separated by colons. Where
EASEL_MLFLOW_SERVER_PYTHON names the interpreter of an environment with the whole of MLflow, its server is asked too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from easel.sdk.mlflow.mlruns import MlrunsFolder
from easel.sdk.mlflow.move import MlflowMove
from easel.sdk.mlflow.records import MovedRun
from easel.sdk.mlflow.server import TrackingServer
from easel.testing.postgres import Postgres
from easel.testing.server import ServerProcess, running

SCRIPT = Path(__file__).parent / "mlflow_stock_client.py"
PYTHONS = [path for path in os.environ.get("EASEL_MLFLOW_PYTHONS", "").split(":") if path]
SERVER_PYTHON = os.environ.get("EASEL_MLFLOW_SERVER_PYTHON", "")
if importlib.util.find_spec("mlflow") is not None:
    PYTHONS.insert(0, sys.executable)

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHONS, reason="mlflow is not installed: `pip install mlflow-skinny` (extra dev)"
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, postgres_server: Postgres) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("s"), postgres_server.create("mlflow_clients")) as started:
        yield started


def said(python: str, folder: Path, address: str, token: str = "") -> dict[str, object]:
    folder.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "EASEL_"))},
        "MLFLOW_TRACKING_URI": address,
        "MLFLOW_TRACKING_TOKEN": token,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }
    done = subprocess.run(
        [python, str(SCRIPT), str(folder)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads((folder / "said.json").read_text())
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_a_stock_client_gets_the_same_answers_as_from_mlflow_itself(
    python: str, server: ServerProcess, tmp_path: Path
) -> None:
    project = f"lab{PYTHONS.index(python)}"
    server.client().projects.create(project)
    theirs = said(python, tmp_path / "theirs", f"sqlite:///{tmp_path}/mlflow.db")
    ours = said(python, tmp_path / "ours", f"{server.address}/mlflow/{project}", server.admin_token)
    assert ours == theirs


@contextlib.contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """MLflow's own server, on SQLite, with its artifacts."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        str(folder / "a"),
    ]
    host, port = address.split(":")
    command = [
        SERVER_PYTHON,
        "-m",
        "mlflow",
        "server",
        "--host",
        host,
        "--port",
        port,
        "--workers",
        "1",
        *store,
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://{address}/health").status_code == 200:
                    break
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            time.sleep(0.2)
        yield f"http://{address}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.skipif(
    not SERVER_PYTHON, reason="EASEL_MLFLOW_SERVER_PYTHON names no environment with the whole of MLflow"
)
@pytest.mark.parametrize("python", PYTHONS)
def test_a_stock_client_gets_the_same_answers_as_from_mlflow_s_newest_server(
    python: str, server: ServerProcess, tmp_path: Path
) -> None:
    project = f"beside{PYTHONS.index(python)}"
    server.client().projects.create(project)
    with mlflow_server(tmp_path / "mlflow") as address:
        theirs = said(python, tmp_path / "theirs", address)
    ours = said(python, tmp_path / "ours", f"{server.address}/mlflow/{project}", server.admin_token)
    assert ours == theirs


@pytest.mark.skipif(
    sys.executable not in PYTHONS, reason="mlflow is not installed: `pip install mlflow-skinny`"
)
def test_autologging_inside_a_job_needs_no_configuration(server: ServerProcess, tmp_path: Path) -> None:
    """The job has no network. Its own run takes what PyTorch's loop logs; nested runs of the others are free runs."""
    server.client().projects.create("auto")
    client = server.client(project="auto")
    (tmp_path / "code").mkdir()
    shutil.copy(SCRIPT.with_name("mlflow_autologging.py"), tmp_path / "code" / "train.py")
    job = client.jobs.submit(["python", "train.py"], code=tmp_path / "code", resources={"memory_mb": 4000})
    ended = job.wait(400)
    assert ended.state == "finished", "\n".join(job.tail())
    tracked = TrackingServer(f"{server.address}/mlflow/auto", server.admin_token)
    runs = {run.name: run for run in tracked.runs("0")}
    own = tracked.run(job.id)
    assert own.params == {"lr": "0.5"}
    losses = [point.value for point in tracked.history(job.id, "loss")]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert "notes.txt" in {file.path for file in tracked.files(own)}
    for name, param in (("sklearn", ("C", "0.5")), ("lightgbm", ("num_leaves", "4"))):
        run = runs[name]
        assert run.params[param[0]] == param[1]
        assert run.tags["mlflow.parentRunId"] == job.id
        assert run.metrics
        assert run.status == "FINISHED"
    tracked.close()


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_folder_of_mlflow_is_brought_in_once(server: ServerProcess, tmp_path: Path) -> None:
    """As MLflow's file store writes it; the second time finds everything there."""
    run = tmp_path / "mlruns" / "5" / "0123abcd"
    write(
        run.parent / "meta.yaml",
        "artifact_location: x\nexperiment_id: '5'\nlifecycle_stage: active\nname: old\n",
    )
    write(
        run / "meta.yaml",
        "run_id: 0123abcd\nrun_name: ancient\nuser_id: ann\nstatus: 3\nstart_time: 1000\nend_time: 2000\n"
        "lifecycle_stage: active\nartifact_uri: x\n",
    )
    write(run / "metrics" / "loss", "1000 0.5 0\n1001 0.25 1\n1002 nan 1\n")
    write(run / "params" / "lr", "0.1")
    write(run / "tags" / "mlflow.user", "ann")
    write(run / "artifacts" / "model" / "weights.bin", "bytes")
    model = tmp_path / "mlruns" / "models" / "flora"
    write(model / "meta.yaml", "name: flora\ndescription: old\n")
    write(
        model / "version-1" / "meta.yaml",
        f"version: 1\nsource: {run}/artifacts/model\nrun_id: 0123abcd\ncurrent_stage: None\n",
    )
    write(model / "aliases" / "champion", "1")
    client = server.client()
    client.projects.create("moved")
    target = TrackingServer(f"{server.address}/mlflow/moved", server.admin_token)
    for first in (True, False):
        moved = MlflowMove(MlrunsFolder(tmp_path / "mlruns"), target).everything()
        assert moved.failed == []
        assert (moved.runs, moved.there, moved.versions) == ((1, 0, 1) if first else (0, 1, 0))
    (experiment,) = [each for each in target.experiments() if each.name == "old"]
    (found,) = list(target.runs(experiment.id))
    assert (found.name, found.user, found.status, found.start_time, found.end_time) == (
        "ancient",
        "ann",
        "FINISHED",
        1000,
        2000,
    )
    assert [point.timestamp for point in target.history(found.id, "loss")] == [1000, 1001, 1002]
    assert [(file.path, file.size) for file in target.files(found)] == [("model/weights.bin", 5)]
    (registered,) = target.models()
    assert registered.aliases == {"champion": 1}
    assert registered.versions[0].source == f"{found.artifact_uri}/model"
    target.close()


def a_folder_with_a_logged_model(folder: Path) -> None:
    """As MLflow 3's file store writes it: a run read data, made a model and measured it; a version was registered."""
    experiment = folder / "5"
    run, model = experiment / "0123abcd", experiment / "models" / "m-77"
    write(experiment / "meta.yaml", "experiment_id: '5'\nlifecycle_stage: active\nname: old\n")
    write(
        run / "meta.yaml",
        "run_id: 0123abcd\nrun_name: ancient\nuser_id: ann\nstatus: 3\nstart_time: 1000\nend_time: 2000\n"
        "lifecycle_stage: deleted\nartifact_uri: x\n",
    )
    write(run / "metrics" / "loss", "1000 0.5 3\n")
    write(run / "inputs" / "d1" / "meta.yaml", "source_id: d1\ntags: {mlflow.data.context: train}\n")
    write(
        experiment / "datasets" / "d1" / "meta.yaml",
        "name: iris\ndigest: abc\nsource: '{}'\nsource_type: local\n",
    )
    write(run / "outputs" / "m-77" / "meta.yaml", "step: 3\n")
    write(
        model / "meta.yaml",
        "model_id: m-77\nname: forest\nexperiment_id: '5'\nstatus: 2\nmodel_type: tree\nsource_run_id: 0123abcd\n"
        "lifecycle_stage: active\n",
    )
    write(model / "params" / "depth", "4")
    write(model / "tags" / "author", "ann")
    write(model / "metrics" / "loss", "1000 0.5 3 0123abcd iris abc\n")
    write(model / "artifacts" / "MLmodel", "flavors: {}\n")
    write(model / "artifacts" / "data" / "weights.bin", "bytes")
    registered = folder / "models" / "flora"
    write(registered / "meta.yaml", "name: flora\n")
    write(
        registered / "version-1" / "meta.yaml",
        f"version: 1\nsource: {model}/artifacts\nrun_id: 0123abcd\ncurrent_stage: None\nmodel_id: m-77\n",
    )


def test_logged_models_are_moved_in_and_out_with_all_that_names_them(
    server: ServerProcess, tmp_path: Path
) -> None:
    """From a folder to Easel, from there to another server, each twice: the second time finds everything there."""
    a_folder_with_a_logged_model(tmp_path / "mlruns")
    for project in ("models-in", "models-out"):
        server.client().projects.create(project)
    here, there = (
        TrackingServer(f"{server.address}/mlflow/{project}", server.admin_token)
        for project in ("models-in", "models-out")
    )
    for first in (True, False):
        for source, target in ((MlrunsFolder(tmp_path / "mlruns"), here), (here, there)):
            moved = MlflowMove(source, target).everything()
            assert moved.failed == []
            assert (moved.logged_models, moved.versions) == ((1, 1) if first else (0, 0))
    (experiment,) = [each for each in there.experiments() if each.name == "old"]
    (run,) = there.runs(experiment.id)
    (model,) = there.logged_models(experiment.id)
    assert run.deleted
    assert [(use.model_id, use.step) for use in run.models_made] == [(model.id, 3)]
    assert [each["dataset"]["name"] for each in run.datasets] == ["iris"]
    assert (model.name, model.status, model.run_id) == ("forest", "LOGGED_MODEL_READY", run.id)
    assert (model.params, model.tags["author"]) == ({"depth": "4"}, "ann")
    (metric,) = model.metrics
    assert (metric.key, metric.point.value, metric.run_id, metric.dataset_name) == (
        "loss",
        0.5,
        run.id,
        "iris",
    )
    assert len(list(there.history(run.id, "loss"))) == 1
    assert {file.path: file.size for file in there.logged_files(model)} == {
        "MLmodel": 12,
        "data/weights.bin": 5,
    }
    assert b"".join(there.read_logged(model, "data/weights.bin")) == b"bytes"
    (registered,) = there.models()
    assert registered.versions[0].model_id == model.id
    assert {file.path for file in there.version_files(registered.versions[0])} == {
        "MLmodel",
        "data/weights.bin",
    }
    here.close()
    there.close()


class BrokenFolder(MlrunsFolder):
    """A source that goes away in the middle of a file."""

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]:
        yield from super().read(run, path)
        if path.endswith("b.bin"):
            raise ConnectionResetError("the other side is gone")


def test_an_import_that_broke_off_is_continued(server: ServerProcess, tmp_path: Path) -> None:
    """It ends in the middle of the second file; the next time brings what is missing, and nothing twice."""
    run = tmp_path / "mlruns" / "5" / "0123abcd"
    write(run.parent / "meta.yaml", "experiment_id: '5'\nlifecycle_stage: active\nname: old\n")
    write(
        run / "meta.yaml",
        "run_id: 0123abcd\nrun_name: ancient\nuser_id: ann\nstatus: 3\nstart_time: 1000\nend_time: 2000\n"
        "lifecycle_stage: active\nartifact_uri: x\n",
    )
    write(run / "metrics" / "loss", "".join(f"{1000 + i} 0.5 {i}\n" for i in range(50)))
    write(run / "params" / "lr", "0.1")
    for name in ("a.bin", "b.bin", "c.bin"):
        write(run / "artifacts" / name, name * 1000)
    server.client().projects.create("broken")
    target = TrackingServer(f"{server.address}/mlflow/broken", server.admin_token)
    with pytest.raises(ConnectionResetError):
        MlflowMove(BrokenFolder(tmp_path / "mlruns"), target).everything()
    moved = MlflowMove(MlrunsFolder(tmp_path / "mlruns"), target).everything()
    assert (moved.failed, moved.runs, moved.there, moved.files) == ([], 1, 0, 2)
    (experiment,) = [each for each in target.experiments() if each.name == "old"]
    (found,) = list(target.runs(experiment.id))
    assert found.status == "FINISHED"
    assert len(list(target.history(found.id, "loss"))) == 50
    assert {file.path: file.size for file in target.files(found)} == dict.fromkeys(
        ("a.bin", "b.bin", "c.bin"), 5000
    )
    target.close()

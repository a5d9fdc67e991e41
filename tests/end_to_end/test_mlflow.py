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

"""Models of apps are registered models: MLflow loads the one that answers, and `mlflow models serve` serves it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from easel.sdk.client import Client
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mlflow") is None,
    reason="mlflow is not installed: `pip install mlflow-skinny` (extra dev)",
)

TABLE = "input: {size: number, town: category}\noutput: {sold: [no, yes]}"
ASKED = [{"size": 2.0, "town": "Bern"}, {"size": -2.0, "town": "Bern"}]
LOAD = """
import json, sys
import pandas
import mlflow
client = mlflow.MlflowClient()
version = client.get_model_version_by_alias("shop", "champion")
model = mlflow.pyfunc.load_model("models:/shop@champion")
asked = json.loads(sys.argv[1])
refused = []
for change in (
    lambda: client.set_registered_model_alias("shop", "mine", version.version),
    lambda: client.delete_registered_model("shop"),
    lambda: client.create_registered_model("shop"),
    lambda: client.set_model_version_tag("shop", version.version, "a", "b"),
):
    try:
        change()
        refused.append("not refused")
    except mlflow.exceptions.MlflowException as error:
        refused.append(error.error_code)
print(json.dumps({
    "table": model.predict(pandas.DataFrame(asked)),
    "list": model.predict(asked),
    "run": version.run_id,
    "trial": client.get_run(version.run_id).info.status,
    "names": [m.name for m in client.search_registered_models()],
    "versions": [v.version for v in client.search_model_versions("name = 'shop'")],
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def shop(server: ServerProcess) -> Client:
    """A client in a project whose app has a model."""
    server.client().projects.create("lab")
    client = server.client(project="lab")
    client.apps.declare("shop", TABLE)
    pairs = [({"size": i / 10, "town": "Bern"}, "yes" if i > 0 else "no") for i in range(-20, 20)]
    client.apps.feed("shop", pairs)
    until(lambda: client.apps.get("shop").serving is not None, 240)
    client.apps.set("shop", paused=True)  # one model is enough
    return client


def surroundings(server: ServerProcess) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "EASEL_"))}
    return {
        **kept,
        "MLFLOW_TRACKING_URI": f"{server.address}/mlflow/lab",
        "MLFLOW_TRACKING_TOKEN": server.admin_token,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }


def labels(answers: Any) -> list[str]:
    return [answer["label"] for answer in answers]


def test_the_model_that_answers_is_loaded_by_its_alias(
    server: ServerProcess, shop: Client, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(ASKED)],
        env=surroundings(server),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert labels(said["table"]) == labels(said["list"]) == ["yes", "no"]
    assert set(said["table"][0]["probabilities"]) == {"no", "yes"}
    assert said["run"] in {trial.job for trial in shop.apps.trials("shop")}
    assert said["trial"] == "FINISHED"
    assert said["names"] == ["shop"]
    assert "1" in said["versions"]
    assert said["refused"] == [
        "INVALID_PARAMETER_VALUE",
        "INVALID_PARAMETER_VALUE",
        "RESOURCE_ALREADY_EXISTS",
        "INVALID_PARAMETER_VALUE",
    ]


def test_mlflow_serves_it(server: ServerProcess, shop: Client, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", "models:/shop@champion"]
    command += ["--env-manager", "local", "--port", str(port), "--host", "127.0.0.1", "--workers", "1"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=surroundings(server), cwd=tmp_path, stdout=log, stderr=log, start_new_session=True
        )
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/ping", timeout=5).status_code == 200:
                    break
            time.sleep(0.1)
        answer = httpx.post(f"{address}/invocations", json={"dataframe_records": ASKED}, timeout=60)
        assert answer.status_code == 200, answer.text
        assert labels(answer.json()["predictions"]) == ["yes", "no"]
    except httpx.TransportError as error:
        raise AssertionError((tmp_path / "log").read_text()[-3000:]) from error
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

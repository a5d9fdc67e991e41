"""Notebooks as jobs, through the command line: parameters, metrics, every cell kept, reruns, studies, faults."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.test_code import easel

from easel.sdk.client import Client
from easel.testing.server import ServerProcess, running
from easel.wire.job import job_fields

SMALL = ("--vcpu", "1", "--memory", "512")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nbclient")
    is None,  # importing it takes seconds, in every process that collects tests
    reason="notebooks need nbclient: pip install easel-ml[notebooks]",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "work"
    made.mkdir()
    return made


def code(source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "metadata": {"tags": list(tags)},
        "source": source.splitlines(keepends=True),
        "outputs": [],
        "execution_count": None,
    }


def write(path: Path, *cells: dict[str, Any]) -> None:
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}))


def last_job(client: Client) -> Any:
    return next(iter(client.jobs.list(1)))


def test_a_notebook_runs_with_parameters_and_every_cell_is_kept(client: Client, folder: Path) -> None:
    data = folder.parent / "words"
    data.mkdir()
    (data / "words.txt").write_text("one two three")
    client.lake.upload(data, "/words/")
    client.lake.create_file_set("words", ["/words/"])
    write(
        folder / "train.ipynb",
        {"cell_type": "markdown", "metadata": {}, "source": "# Training"},
        code("lr = 1.0\ndata = '.'", "parameters"),
        code("from pathlib import Path\nwords = Path(data, 'words', 'words.txt').read_text().split()"),
        code("print(f'[EASEL_METRIC] loss={lr}')\nprint('[EASEL_TAG] job model:tiny')\nlen(words)"),
        code("from IPython.display import HTML\nHTML('<script>alert(1)</script>')"),
    )
    done = easel(client, folder, "run", *SMALL, "train.ipynb", "-P", "lr=0.25", "-P", "data=words:1")
    assert done.returncode == 0, done.stderr + done.stdout
    job = last_job(client)
    assert (job.about.kind, job.about.input_set) == ("notebook", "words:1")
    assert job.series("loss")[0].value == 0.25
    assert dict(next(client.lake.find("job", f"name = '{job.id}'")).tags)["model"] == "tiny"
    cells = job.notebook()["cells"]
    assert [cell.get("execution_count") for cell in cells] == [None, 1, 2, 3, 4, 5]
    assert cells[2]["metadata"]["tags"] == ["injected-parameters"]
    assert cells[4]["outputs"][1]["data"]["text/plain"] == "3"
    assert "script" in cells[5]["outputs"][0]["data"]["text/html"]
    names = [
        item.path.rpartition("/")[2] for item in client.lake.ls(f"/@{job.about.output_set}", recursive=True)
    ]
    assert names == ["train.ipynb"]


def test_what_ran_before_a_failure_is_kept_and_a_rerun_begins_at_a_cell(client: Client, folder: Path) -> None:
    write(
        folder / "n.ipynb",
        code("import math\nBASE = 2\ndef double(x):\n    return x * BASE"),
        code("print('expensive')\nvalue = double(21)"),
        code("print(double(4))\n1 / 0"),
    )
    done = easel(client, folder, "run", *SMALL, "n.ipynb")
    assert done.returncode == 1
    assert "cell 3: ZeroDivisionError: division by zero" in done.stderr
    failed = last_job(client)
    assert failed.about.reason == "cell 3: ZeroDivisionError: division by zero"
    cells = failed.notebook()["cells"]
    assert cells[1]["outputs"][0]["text"] == "expensive\n"
    assert cells[2]["outputs"][-1]["ename"] == "ZeroDivisionError"
    again = easel(client, folder, "rerun", failed.id, "--from-cell", "3")
    rerun = client.jobs.get(again.stdout.strip()).wait(120, check=False)
    assert [line.text for line in rerun.logs() if line.stream == "out"] == ["8"]
    assert rerun.about.parent_id == failed.id
    assert rerun.notebook()["cells"][1]["outputs"][0]["text"] == "expensive\n"


def test_a_cell_that_prints_without_end_stays_readable_and_a_kernel_that_dies_is_named(
    client: Client, folder: Path
) -> None:
    write(
        folder / "n.ipynb",
        code("line = 'x' * 99\nfor _ in range(150_000):\n    print(line)\nprint('[EASEL_METRIC] loss=0.5')"),
        code("print('after')"),
        code("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    )
    done = easel(client, folder, "run", "--detach", *SMALL, "n.ipynb")
    job = client.jobs.get(done.stdout.strip()).wait(120, check=False)
    cells = job.notebook()["cells"]
    shown = "".join(output["text"] for output in cells[0]["outputs"])
    assert len(shown) < 250_000
    assert "the rest of what this cell printed is in the job's log" in shown
    assert job.series("loss")[0].value == 0.5
    assert cells[1]["outputs"][0]["text"] == "after\n"
    assert job.about.reason is not None
    assert job.about.reason.startswith("cell 3: the kernel died")


def test_a_notebook_is_reproduced_as_it_ran(client: Client, folder: Path) -> None:
    (folder / "books").mkdir()
    (folder / "books" / "beside.txt").write_text("beside the notebook")
    data = folder.parent / "counted"
    data.mkdir()
    (data / "counted.txt").write_text("one two three")
    client.lake.upload(data, "/counted/")
    client.lake.create_file_set("counted", ["/counted/"])
    write(
        folder / "books" / "n.ipynb",
        code("lr = 1.0\ndata = '.'\nname = ''", "parameters"),
        code("print('expensive')\nBASE = 2"),
        code(
            "from pathlib import Path\n"
            "print(lr + BASE, name, Path('beside.txt').read_text(), "
            "Path(data, 'counted', 'counted.txt').read_text())"
        ),
    )
    job = client.jobs.submit(
        notebook="books/n.ipynb",
        parameters={"lr": 0.25, "data": "$EASEL_INPUT", "name": "it's 'quoted'"},
        code=folder,
        input="counted:1",
        environment={"requirements": "none"},
    ).kill()
    again = client.jobs.get(job.id).rerun(from_cell=4).kill()  # counted with the cell that sets parameters
    where = folder.parent / "again"
    done = easel(client, folder, "reproduce", again.id, str(where))
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        ["sh", str(where / "reproduce.sh")], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (
        0,
        "2.25 it's 'quoted' beside the notebook one two three\n",
    ), ran.stderr
    executed = json.loads((where / "output" / "n.ipynb").read_text())["cells"]
    assert "2.25" in executed[-1]["outputs"][0]["text"]


def test_cells_are_told_while_it_runs_and_stay_when_it_is_killed(client: Client, folder: Path) -> None:
    write(folder / "n.ipynb", code("print('kept')"), code("import time\ntime.sleep(600)"))
    done = easel(client, folder, "run", "--detach", *SMALL, "n.ipynb")
    job = client.jobs.get(done.stdout.strip())
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        found = client.connection.request("GET", f"{client.root}/jobs/{job.id}/notebook").json()
        if [cell["state"] for cell in found["cells"]] == ["done", "running"]:
            break
        time.sleep(0.1)
    later = client.connection.request(
        "GET", f"{client.root}/jobs/{job.id}/notebook", params={"since": found["next"]}
    ).json()
    assert later["cells"] == []
    job.kill()
    assert job.wait(60, check=False).state == "killed"
    assert job.notebook()["cells"][0]["outputs"][0]["text"] == "kept\n"


def test_what_is_no_notebook_is_refused_before_anything_is_sent(client: Client, folder: Path) -> None:
    (folder / "bad.ipynb").write_text('{"cells": [')
    done = easel(client, folder, "run", "bad.ipynb")
    assert done.returncode == 2
    assert "bad.ipynb is not a notebook: it is not valid JSON" in done.stderr
    done = easel(client, folder, "run", "-P", "a=1", "--", "python", "x.py")
    assert done.returncode == 2
    assert "-P sets parameters of a notebook" in done.stderr


def test_a_notebook_is_a_step_of_a_pipeline(client: Client, folder: Path) -> None:
    write(
        folder / "n.ipynb",
        code("x = 0.0", "parameters"),
        code("print(f'[EASEL_METRIC] loss={(x - 2) ** 2}')"),
    )
    sent = client.jobs.send_code(folder)
    job = {
        "notebook": "n.ipynb",
        "code": sent.reference,
        "resources": {"vcpu": 1, "memory_mb": 512},
    }
    steps = [{"name": "first", "job": job_fields({**job, "parameters": {"x": 1}})}]
    pipeline = client.pipelines.submit("one", steps)
    (step,) = client.pipelines.wait(pipeline.id, 120).steps
    assert client.jobs.get(step.job_id).series("loss")[0].value == 1.0


def test_a_notebook_is_the_trial_of_a_study_and_gets_each_point_as_its_parameters(
    client: Client, folder: Path
) -> None:
    write(
        folder / "train.ipynb",
        code("rate = 1.0\nepochs = 1", "parameters"),
        code("loss = (rate - 0.5) ** 2 + epochs\nprint(f'[EASEL_METRIC] loss={loss}')"),
    )
    (folder / "study.yaml").write_text(
        "name: rates\n"
        "job: {notebook: train.ipynb, parameters: {epochs: 3}, code: ., resources: {vcpu: 1, memory_mb: 512}}\n"
        "space: [{name: rate, type: ordinal, values: [0.25, 0.5]}]\n"
        "goal: {minimise: loss, budget: {count: 2}}\nstrategy: grid\n"
    )
    found = easel(client, folder, "studies", "run", "study.yaml")
    assert found.returncode == 0, found.stderr + found.stdout
    points = client.studies.points("rates")
    assert {p.point["rate"]: p.values["loss"] for p in points} == {0.25: 3.0625, 0.5: 3.0}
    for point in points:
        job = client.jobs.get(point.job_id or "")
        assert job.about.kind == "notebook"
        assert f"rate = {point.point['rate']}" in "".join(job.notebook()["cells"][1]["source"])

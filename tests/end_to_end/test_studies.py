"""A study from its YAML file to its recommendation, through a real server with real jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from easel.cli.main import app
from easel.errors import Conflict, NotFound
from easel.sdk.client import Client
from easel.testing.server import running

TRAIN = """
import json, os, sys
point = json.loads(os.environ["EASEL_POINT"])
rows = open(os.environ["EASEL_INPUT"] + "/data/train.csv").read().splitlines()[1:]
accuracy = 0.6 + 0.3 * (float(sys.argv[2]) == 0.1) + 0.0002 * len(rows)
print(f"[EASEL_METRIC] accuracy={accuracy} step=1")
print(f"[EASEL_METRIC] rows={len(rows)} step=1")
assert os.environ["EASEL_DATA_FRACTION"] == repr(point["data_fraction"])
"""
STUDY = """
name: {name}
job:
  command: python3 train.py --rate {{rate}}
  code: code
  input: data
  resources: {{vcpu: 0.5, memory_mb: 256}}
space:
  - {{name: rate, type: ordinal, values: [1e-3, 1e-2, 0.1]}}
  - {{name: memory_mb, type: ordinal, values: [256, 512], role: resource}}
  - {{name: data_fraction, type: ordinal, values: [0.1, 0.5, 1.0], role: fidelity}}
goal: {{maximise: accuracy, constraints: [cost <= 1], budget: {{count: {count}}}}}
strategy: {strategy}
workers: 2
data: {{label: digit, keep: [/data/test.csv]}}
"""


@pytest.fixture(scope="module")
def ana(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("studies")
    with running(folder) as server:
        client = server.client()
        client.projects.create("astro")
        client = client.in_project("astro")
        (folder / "code").mkdir()
        (folder / "code" / "train.py").write_text(TRAIN)
        (folder / "data").mkdir()
        rows = "".join(f"{i},{i % 2}\n" for i in range(100))
        (folder / "data" / "train.csv").write_text(f"pixel,digit\n{rows}")
        (folder / "data" / "test.csv").write_text("pixel,digit\n1,1\n")
        client.lake.upload(folder / "code", "/code/")
        client.lake.upload(folder / "data", "/data/")
        client.lake.create_file_set("code", ["/code/"])
        client.lake.create_file_set("data", ["/data/"])
        yield client


def test_a_study_runs_its_points_as_jobs_and_recommends_the_best(ana: Client) -> None:
    made = ana.studies.create_from(STUDY.format(name="digits", count=6, strategy="auto"))
    assert made.state == "running"
    heard: list[int] = []
    done = ana.studies.wait("digits", 120, told=lambda point: heard.append(point.number))
    assert done.state == "finished", done.reason
    points = ana.studies.points("digits")
    assert sorted(heard) == [p.number for p in points] == list(range(6))
    assert [p.state for p in points] == ["completed"] * 6, [p.reason for p in points]
    for point in points:
        # 100 rows, alike of both digits; the test file is left whole
        assert point.values["rows"] == 100 * point.point["data_fraction"]
        job = ana.jobs.get(point.job_id or "").about
        assert job.spec["resources"]["memory_mb"] == point.point["memory_mb"]
        assert point.values["cost"] is not None
        assert point.values["cost"] > 0
    assert done.budget.spent == 6
    assert done.best is not None
    assert done.best.predicted["accuracy"].median > 0
    assert done.best.probability is not None


def test_the_command_line_tells_the_whole_story(
    ana: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASEL_SERVER", ana.server)
    monkeypatch.setenv("EASEL_TOKEN", ana.connection.http.headers["Authorization"].removeprefix("Bearer "))
    monkeypatch.setenv("EASEL_PROJECT", "astro")
    monkeypatch.setenv("COLUMNS", "300")
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(name="told", count=3, strategy="grid"))
    shell = CliRunner()

    def easel(*arguments: str) -> str:
        done = shell.invoke(app, ["study", *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "easel studies run told" in easel("create", str(file))
    with pytest.raises(NotFound, match="nothing to recommend"):
        shell.invoke(app, ["studies", "best", "told"], catch_exceptions=False)
    output = easel("run", "told")
    assert "#0 completed" in output
    assert "told finished: the budget of 3 is spent" in output
    assert "best measured:" in output
    assert "output job_" in output
    assert "told" in easel("ls")
    assert "rows 10" in easel("show", "told")
    assert "rate=0.001" in easel("best", "told")
    easel("export", "told", str(tmp_path / "points.csv"))
    easel("resume", "told", "--budget", "count=4")
    assert len(ana.studies.points("told")) == 4
    file.write_text(STUDY.format(name="copy", count=9, strategy="grid"))
    easel("create", str(file))
    assert "3 new points" in easel("import", "copy", str(tmp_path / "points.csv"))
    assert "stopped" in easel("stop", "copy")
    easel("rm", "copy")
    # the file of a study whose space was changed since
    file.write_text(STUDY.format(name="told", count=3, strategy="grid").replace("1e-3, ", ""))
    with pytest.raises(Conflict, match="space differ"):
        shell.invoke(app, ["studies", "run", str(file)], catch_exceptions=False)


def test_models_and_front_are_served(ana: Client) -> None:
    ana.studies.create_from(STUDY.format(name="models", count=5, strategy="lhs"))
    ana.studies.wait("models", 120)
    along = ana.studies.slice("models", "rate")
    assert along.values == [0.001, 0.01, 0.1]
    assert len(along.of["accuracy"]) == len(along.of["cost"]) == len(along.probability) == 3
    matter = ana.studies.importances("models")
    assert {one.dimension for one in matter} == {"rate", "memory_mb"}  # the fidelity is held
    region = ana.studies.region("models", "rate", "data_fraction")
    assert len(region.probability) == len(region.objective) == 3
    assert ana.studies.export_csv("models").count("\n") == 6


def test_files_are_subsampled_whole_where_there_is_no_label(ana: Client, tmp_path: Path) -> None:
    for kind in ("cat", "dog"):
        (tmp_path / "pets" / "train" / kind).mkdir(parents=True)
        for i in range(10):
            (tmp_path / "pets" / "train" / kind / f"{i}.txt").write_text(f"{kind}{i}")
    (tmp_path / "pets" / "test").mkdir()
    (tmp_path / "pets" / "test" / "0.txt").write_text("cat")
    ana.lake.upload(tmp_path / "pets", "/pets/")
    ana.lake.create_file_set("pets", ["/pets/"])
    ana.studies.create(
        "pets",
        job={
            "run": {"kind": "command", "argv": ["sh", "-c", COUNT]},
            "input": "pets",
            "resources": {"vcpu": 0.5, "memory_mb": 128},
        },
        space={
            "dimensions": [
                {"name": "rate", "type": "ordinal", "values": [1]},
                {"name": "share", "type": "ordinal", "values": [0.3, 1.0], "role": "fidelity"},
            ]
        },
        goal={"maximise": "cats", "budget": {"count": 2}},
        strategy="grid",
        data={"dimension": "share", "keep": ["test/*"]},
    )
    ana.studies.wait("pets", 120)
    small, whole = ana.studies.points("pets")
    names = ("cats", "dogs", "tests")
    assert [small.values[name] for name in names] == [3, 3, 1]
    assert [whole.values[name] for name in names] == [10, 10, 1]
    job = ana.jobs.get(small.job_id or "").about
    assert job.input_set == "pets-sample:1"
    sources = {node.name for node in ana.lake.trace("pets-sample:1").nodes}
    assert "pets" in sources


COUNT = """
cd input/pets
for k in cat dog; do echo "[EASEL_METRIC] ${k}s=$(ls train/$k | wc -l)"; done
echo "[EASEL_METRIC] tests=$(ls test | wc -l)"
"""

"""A study from its YAML file to its recommendation, through a real server with real jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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

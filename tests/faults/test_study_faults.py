"""`kill -9` of a whole server while a study runs: it goes on with the point that it would have chosen anyway."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from easel.declare.goal import parse_goal
from easel.declare.space import parse_space
from easel.records.study import Finished, Observation, PointOutcome
from easel.sdk.client import Client
from easel.testing.engine import until
from easel.testing.server import running
from easel.tune.tuner import Tuner

STUDY = """
name: digits
job:
  command: sh -c 'sleep 0.3; echo "[EASEL_METRIC] accuracy=0.{{rate}}{{depth}}"'
  resources: {{vcpu: 0.5, memory_mb: 128}}
space:
  - {{name: rate, type: integer, low: 1, high: 9}}
  - {{name: depth, type: integer, low: 1, high: 9}}
goal: {{maximise: accuracy, constraints: [time <= 1000], budget: {{count: {count}}}}}
strategy: auto
seed: 3
"""


def _has(client: Client, wanted: int) -> bool:
    return len(client.studies.points("digits")) >= wanted


def test_a_study_whose_server_is_killed_again_and_again_suggests_what_it_would_have_anyway(
    tmp_path: Path,
) -> None:
    count = 8
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("astro")
        ana = root.in_project("astro")
        ana.studies.create_from(STUDY.format(count=count))
        for wanted in (2, 4, 6):
            # killed while a point runs, while one is being settled, while the next is chosen: whenever it is
            until(partial(_has, ana, wanted))
            server.kill()
            server.start()
        done = ana.studies.wait("digits", 180)
        assert (done.state, done.reason) == ("finished", f"the budget of {count} is spent")
        points = ana.studies.points("digits")
        jobs = [job.id for job in ana.jobs.list(100)]
    assert [p.number for p in points] == list(range(count))
    assert sorted(jobs) == sorted(p.job_id for p in points if p.job_id), "one job a point, none twice"
    space, goal = parse_space(done.space), parse_goal(done.goal)
    history: list[Observation] = []
    for point in points:
        tuner = Tuner.resume(space, goal, "auto", history, seed=3)
        asked = tuner.ask()
        assert not isinstance(asked, Finished)
        assert asked.point == point.point
        values = {name: v for name, v in point.values.items() if v is not None}
        history.append(Observation(point.point, values, PointOutcome(point.state), point.number))

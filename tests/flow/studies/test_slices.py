"""Studies that declare along which fidelity their points go on: slice by slice, from the checkpoint each one left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.flow.studies.conftest import Studio

from easel.declare.goal import own_use
from easel.errors import InvalidInput
from easel.flow.apps.declare import declare_app, delete_app
from easel.flow.apps.feed import feed
from easel.flow.jobs.control import kill_job
from easel.flow.studies.measure import whole_of
from easel.flow.studies.point import earlier_of, job_for
from easel.ids import JobId, StudyId
from easel.records.job import JobState
from easel.records.study import PointOutcome, StudyPoint
from easel.run.launch import checkpoint_folder
from easel.store import jobs, queue_now
from easel.wire.study import study_fields

STUDY = """
name: nets
job:
  command: >-
    sh -c 'echo "[EASEL_METRIC] began=$(cat $EASEL_CHECKPOINT/epochs || echo 0)";
    echo {epochs} > $EASEL_CHECKPOINT/epochs; ln -s /etc/hostname $EASEL_CHECKPOINT/link; true {rate};
    echo "[EASEL_METRIC] accuracy=0.{rate}"'
  resources: {vcpu: 0.5, memory_mb: 64}
space:
  - {name: rate, type: ordinal, values: [1, 2, 3, 4]}
  - {name: epochs, type: ordinal, values: [1, 3, 9], role: fidelity}
goal: {maximise: accuracy, budget: {count: 9}}
strategy: hyperband
early_stopping: false
slices: epochs
"""


def point(
    number: int, rate: int, epochs: int, outcome: PointOutcome | None = None, **values: float
) -> StudyPoint:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    at = {"rate": rate, "epochs": epochs}
    job = JobId(f"job_{number}")
    return StudyPoint(
        StudyId("std"), number, at, outcome, job, values, {}, None, None, number, None, None, now, now
    )


def test_points_go_on_from_what_the_same_settings_left_lower_down(studio: Studio) -> None:
    studio.create(STUDY)
    points = studio.finish("nets")
    reached: dict[object, list[float]] = {}
    went_on = 0
    for each in sorted(points, key=lambda one: one.told or 0):
        rate, epochs = each.point["rate"], float(each.point["epochs"])
        assert each.outcome is PointOutcome.COMPLETED, each.reason
        before = max((level for level in reached.get(rate, []) if level < epochs), default=0.0)
        assert each.values["began"] == before, "it found what the slice before left"
        went_on += before > 0
        reached.setdefault(rate, []).append(epochs)
        assert ("slice_time" in each.values) == (each.values["began"] > 0)
    assert went_on
    with studio.engine.store.read() as tx:
        rows = jobs.rows(tx, [str(each.job_id) for each in points])
    assert all(row.spec["slice"] and row.spec["preemptible"] for row in rows.values())


LONG = """
name: long
job:
  command: >-
    sh -c 'echo {epochs} {rate} >> $EASEL_CHECKPOINT/begun;
    test $(wc -l < $EASEL_CHECKPOINT/begun) -gt 1 || exec sleep 600;
    echo "[EASEL_METRIC] accuracy=0.{rate}"'
  resources: {vcpu: 1, memory_mb: 64}
space:
  - {name: rate, type: ordinal, values: [1, 2]}
  - {name: epochs, type: ordinal, values: [3], role: fidelity}
goal: {maximise: accuracy, budget: {count: 2}}
strategy: grid
workers: 2
early_stopping: false
slices: epochs
"""


def test_points_that_fill_the_pool_give_way_to_a_newly_fed_app_and_go_on_from_what_they_kept(
    studio: Studio,
) -> None:
    engine, ana = studio.engine, studio.engine.caller()
    studio.create(LONG)
    studio.until(lambda: len(studio.points("long")) == 2)
    both = [JobId(str(point.job_id)) for point in studio.points("long")]

    def states() -> list[JobState]:
        with engine.store.read() as tx:
            return [JobState(row.state) for row in jobs.rows(tx, both).values()]

    kept = [checkpoint_folder(engine.home, job) / "begun" for job in both]
    studio.until(lambda: all(path.exists() for path in kept) and set(states()) == {JobState.RUNNING})
    with engine.store.write() as tx:
        declare_app(tx, ana, "flowers", "input: {size: number}\noutput: [no, yes]")
    feed(
        engine.lake,
        ana,
        "flowers",
        [({"size": float(k % 7)}, "yes" if k % 7 > 3 else "no") for k in range(40)],
    )

    def trials() -> list[str]:
        with engine.store.read() as tx:
            return [job.device or "" for job in queue_now.active(tx) if job.spec["run"]["kind"] == "trial"]

    studio.until(lambda: bool(trials()))
    assert sorted(states()) == [JobState.QUEUED, JobState.RUNNING], "one gives way and no more than one"
    with engine.store.write() as tx:
        delete_app(tx, ana, "flowers")
        kill_job(tx, ana, both[states().index(JobState.RUNNING)])
    points = studio.finish("long")
    outcomes = sorted(point.outcome or "" for point in points)
    assert PointOutcome.COMPLETED in outcomes, "it went on from what it had kept"
    with engine.store.read() as tx:
        rows = jobs.rows(tx, both).values()
    assert [(row.lost, row.failed) for row in rows] == [(0, 0)] * 2, "it cost none of its tries"
    assert max(row.attempt for row in rows) == 2


def test_the_furthest_completed_point_of_the_same_settings_is_gone_on_from() -> None:
    spec = study_fields(STUDY).spec()
    done, failed = PointOutcome.COMPLETED, PointOutcome.FAILED
    points = [
        point(0, 1, 1, done, time=10.0, cost=1.0),
        point(1, 1, 3, done, time=30.0, cost=3.0),
        point(2, 1, 9, failed, time=5.0),
        point(3, 2, 3, done, time=30.0),
        point(4, 1, 3),
    ]
    found = earlier_of(spec, {"rate": 1, "epochs": 9}, points)
    assert found is not None
    assert (found.number, found.reached, found.seconds, found.cost) == (1, 3.0, 30.0, 3.0)
    assert earlier_of(spec, {"rate": 1, "epochs": 1}, points) is None
    assert earlier_of(spec, {"rate": 3, "epochs": 9}, points) is None
    assert earlier_of(replace(spec, slices=None), {"rate": 1, "epochs": 9}, points) is None
    job = job_for(spec, "nets", 5, {"rate": 1, "epochs": 9}, None, None, replace(found, checkpoint="s:2"))
    assert (job.resume, job.slice, job.preemptible) == ("s:2", True, True)
    assert job.environment.variables["EASEL_SLICE_FROM"] == "3.0"


def test_a_point_is_told_with_what_it_took_in_all_and_the_budget_pays_each_slice_once() -> None:
    whole = whole_of({"time": 4.0, "cost": 0.4, "accuracy": 0.9}, seconds=6.0, cost=0.6)
    assert (whole["time"], whole["cost"], whole["accuracy"]) == (10.0, 1.0, 0.9)
    own = own_use(whole)
    assert (own["time"], own["cost"]) == (4.0, 0.4)
    assert own_use({"time": 3.0}) == {"time": 3.0}


@pytest.mark.parametrize(
    ("slices", "why"),
    [("rate", "is not a fidelity"), ("nothing", "is not a fidelity"), ("share", "is the share of the data")],
)
def test_what_nothing_can_go_on_along_is_refused(slices: str, why: str) -> None:
    share = "  - {name: share, type: ordinal, values: [0.5, 1.0], role: fidelity}\ngoal:"
    text = STUDY.replace("slices: epochs", f"slices: {slices}\ndata: {{dimension: share}}")
    with pytest.raises(InvalidInput, match=why):
        study_fields(text.replace("goal:", share)).spec()

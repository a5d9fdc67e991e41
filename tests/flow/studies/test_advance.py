"""A study on a real engine: its points become jobs, and whatever happens it goes on with the same next point."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.flow.studies.conftest import Studio, on_both_databases

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.flow.jobs.control import kill_job
from easel.flow.studies import advance, look
from easel.flow.studies.advance import ReadyStudy
from easel.flow.studies.declare import create_study, delete_study, start_study, stop_study
from easel.flow.studies.measure import curve
from easel.flow.studies.verify import PointToVerify, start_verifying, to_verify
from easel.records.decision import Reasons, StartTrial
from easel.records.standing import Standing
from easel.records.study import Finished, PointOutcome, StudyState
from easel.store import billing, jobs, studies
from easel.tune import strategy
from easel.tune.state import State
from easel.tune.strategy import PointChoice, register
from easel.tune.tuner import Tuner
from easel.wire.study import study_fields

STUDY = """
name: digits
job:
  command: sh -c 'true {{rate}} {{depth}}; {command}'
  resources: {{vcpu: 0.5, memory_mb: 64}}
space:
  - {{name: rate, type: ordinal, values: [1, 2, 3, 4]}}
  - {{name: depth, type: ordinal, values: [1, 2, 3]}}
goal: {goal}
strategy: {strategy}
workers: {workers}
early_stopping: {early}
"""
SAY = 'echo "[EASEL_METRIC] accuracy=0.{rate}{depth}"'


def text(
    command: str = SAY,
    goal: str = "{maximise: accuracy, budget: {count: 3}}",
    strategy: str = "auto",
    workers: int = 1,
    early: bool = False,
    name: str = "digits",
) -> str:
    made = STUDY.format(command=command, goal=goal, strategy=strategy, workers=workers, early=early)
    return made.replace("name: digits", f"name: {name}", 1)


def decision(study: str) -> StartTrial:
    return StartTrial(study, "next point", 0, "local/0", Reasons("test", 0.5, 0.1, 0.1, 1.0, 0.0))


@on_both_databases
def test_every_point_is_what_the_strategy_says_from_the_history_alone(studio: Studio) -> None:
    study = studio.create(text(goal="{maximise: accuracy, budget: {count: 5}}"))
    points = studio.finish("digits")
    assert studio.study("digits").reason == "the budget of 5 is spent"
    history: list[Any] = []
    for point in points:
        tuner = Tuner.resume(study.spec.space, study.spec.goal, "auto", history)
        asked = tuner.ask()
        assert not isinstance(asked, Finished)
        assert (asked.point, asked.number) == (point.point, point.number)
        rate, depth = point.point["rate"], point.point["depth"]
        assert point.values["accuracy"] == pytest.approx(float(f"0.{rate}{depth}"))
        assert point.decision is not None
        history.append(point.observation)
    assert [p.spent for p in points] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert points[-1].best is not None
    assert points[-1].best["predicted"]["accuracy"]["low"] <= points[-1].best["predicted"]["accuracy"]["high"]
    with studio.engine.store.read() as tx:
        standing = look.standing(tx, studio.study("digits"))
    assert standing.best == points[-1].best
    assert "the next point" in (standing.why or "").lower()
    assert standing.account.status is Standing.FINISHED
    assert "the budget of 5 is spent" in standing.account.sentence


@on_both_databases
def test_a_suggestion_that_is_started_twice_makes_one_job(studio: Studio) -> None:
    study = studio.create(text())
    ready = advance.prepare(studio.engine.lake, study, [])
    again = advance.prepare(studio.engine.lake, study, [])
    assert isinstance(ready, ReadyStudy)
    assert isinstance(again, ReadyStudy)
    assert again.suggestion == ready.suggestion
    with studio.engine.store.write() as tx:
        advance.start_point(tx, ready, decision(study.id), 1)
        with pytest.raises(Conflict, match="changed"):
            advance.start_point(tx, again, decision(study.id), 2)
    assert len(studio.points("digits")) == 1


@on_both_databases
def test_a_result_is_taken_once_however_often_it_is_looked_at(studio: Studio) -> None:
    study = studio.create(text())
    studio.until(lambda: any(p.told is not None for p in studio.points("digits")))
    revision = studio.study("digits").revision
    with studio.engine.store.write() as tx:
        assert (
            advance.settle(tx, [p.job_id for p in studio.points("digits") if p.told is not None and p.job_id])
            == 0
        )
        assert not studies.end_point(tx, study.id, 0, {}, PointOutcome.FAILED, None)
    assert studio.points("digits")[0].outcome is PointOutcome.COMPLETED
    assert studio.study("digits").revision >= revision


@on_both_databases
def test_time_and_cost_are_those_of_the_bill(studio: Studio) -> None:
    studio.create(text(command=f"sleep 0.2; {SAY}", goal="{minimise: cost, budget: {count: 1}}"))
    (point,) = studio.finish("digits")
    with studio.engine.store.read() as tx:
        project = studio.engine.people["ana"].project_id
        lines = billing.lines_of(tx, project, str(point.job_id))
    assert point.values["time"] == pytest.approx(sum(line.seconds for line in lines))
    cost = sum(line.seconds * line.per_hour for line in lines) / 3600
    assert point.values["cost"] == pytest.approx(cost)
    assert point.values["cost"] > 0


def test_a_study_whose_first_points_fail_stops_with_their_last_line(studio: Studio) -> None:
    broken = "echo {rate}{depth}; echo no such data >&2; exit 3"
    studio.create(text(command=broken, goal="{maximise: accuracy, budget: {count: 12}}", strategy="random"))
    points = studio.finish("digits")
    assert len(points) == 3
    reason = studio.study("digits").reason or ""
    assert "first 3 points all failed" in reason
    assert "no such data" in reason


def test_a_study_whose_goal_nobody_prints_stops_and_says_what_was_printed(studio: Studio) -> None:
    studio.create(text(goal="{maximise: acuracy, budget: {count: 12}}", strategy="random"))
    assert len(studio.finish("digits")) == 3
    reason = studio.study("digits").reason or ""
    assert "did not measure acuracy" in reason
    assert "they measured accuracy (did you mean accuracy?)" in reason
    assert "its log ends with: [EASEL_METRIC] accuracy=0." in reason


def test_the_best_measured_point_names_its_job_and_output_or_what_it_misses(studio: Studio) -> None:
    studio.create(text(goal="{maximise: accuracy, budget: {count: 4}}", strategy="grid"))
    points = studio.finish("digits")
    with studio.engine.store.read() as tx:
        best = look.standing(tx, studio.study("digits")).measured
    assert best is not None
    assert best.point.values["accuracy"] == max(p.values["accuracy"] for p in points)
    assert best.output_set == f"{best.point.job_id}-output:1"
    assert best.missed == ()
    goal = "{maximise: accuracy, constraints: [accuracy >= 0.9], budget: {count: 4}}"
    studio.create(text(goal=goal, strategy="grid", name="proud"))
    studio.finish("proud")
    with studio.engine.store.read() as tx:
        near = look.standing(tx, studio.study("proud")).measured
    assert near is not None
    assert near.missed == ("accuracy >= 0.9",)


def test_failing_and_silent_and_odd_points_do_not_stop_a_study(studio: Studio) -> None:
    odd = (
        'case {rate} in 1) exit 3;; 2) echo hello;; 3) echo "[EASEL_METRIC] accuracy=nan";; '
        '4) echo "[EASEL_METRIC] accuracy=inf";; esac'
    )
    studio.create(
        text(command=odd, goal="{maximise: accuracy, budget: {count: 12}}", strategy="random", workers=2)
    )
    points = studio.finish("digits")
    assert len(points) == 12
    outcomes = {p.point["rate"]: p.outcome for p in points}
    assert outcomes == {
        1: PointOutcome.FAILED,
        2: PointOutcome.COMPLETED,
        3: PointOutcome.COMPLETED,
        4: PointOutcome.COMPLETED,
    }
    assert all(math.isnan(p.values["accuracy"]) for p in points if p.point["rate"] == 3)
    assert all(p.values["accuracy"] == math.inf for p in points if p.point["rate"] == 4)
    with studio.engine.store.read() as tx:
        assert look.standing(tx, studio.study("digits")).best is None


def test_a_study_ends_when_every_point_was_tried(studio: Studio) -> None:
    studio.create(text(goal="{maximise: accuracy, budget: {count: 100}}", strategy="grid", workers=4))
    assert len(studio.finish("digits")) == 12
    assert "every point" in (studio.study("digits").reason or "")


def test_a_run_that_outlives_the_budget_is_ended_and_counts_as_stopped(studio: Studio) -> None:
    studio.create(text(command="sleep 1000", goal="{maximise: accuracy, budget: {time: 1}}"))
    (point,) = studio.finish("digits")
    assert point.outcome is PointOutcome.STOPPED
    assert "spent" in (studio.study("digits").reason or "")
    assert point.values["time"] >= 1


def test_a_run_whose_curve_is_hopeless_is_ended(studio: Studio) -> None:
    """Five good curves; then one that is poor from its second step on and would never end by itself."""
    command = (
        'for i in 1 2 3; do echo "[EASEL_METRIC] accuracy=0.9 step=$i"; done; '
        'if [ {rate} = 1 ]; then echo "[EASEL_METRIC] accuracy=0.1 step=1"; '
        'echo "[EASEL_METRIC] accuracy=0.1 step=2"; echo "[EASEL_METRIC] accuracy=0.1 step=3"; sleep 1000; fi'
    )
    made = text(
        command=command, goal="{maximise: accuracy, budget: {count: 12}}", strategy="grid", early=True
    )
    studio.create(made.replace("values: [1, 2, 3, 4]", "values: [4, 3, 1]"))
    points = studio.finish("digits")
    poor = [p for p in points if p.point["rate"] == 1]
    assert [p.outcome for p in points if p.point["rate"] != 1] == [PointOutcome.COMPLETED] * 6
    assert len(poor) == 3
    assert all(p.outcome is PointOutcome.STOPPED and "median" in (p.reason or "") for p in poor)


def test_a_run_that_has_reached_its_constraint_is_not_hopeless_however_well_others_do(studio: Studio) -> None:
    command = (
        'for i in 1 2 3; do echo "[EASEL_METRIC] accuracy=0.9{rate} step=$i"; done; '
        "while [ -e {until} ] && [ {rate} = 1 ]; do sleep 0.02; done"
    )
    held = studio.engine.home / "held"
    held.touch()
    goal = "{minimise: cost, constraints: [accuracy >= 0.85], budget: {count: 9}}"
    made = text(command=command.replace("{until}", str(held)), goal=goal, strategy="grid", early=True)
    studio.create(made.replace("values: [1, 2, 3, 4]", "values: [4, 3, 1]"))
    studio.until(lambda: len(studio.points("digits")) == 7 and _series(studio, 6) >= 3)
    assert advance.stop_runs(studio.engine.store) == 0
    held.unlink()
    assert [p.outcome for p in studio.finish("digits")] == [PointOutcome.COMPLETED] * 9


def _series(studio: Studio, number: int) -> int:
    job_id = str(studio.points("digits")[number].job_id)
    with studio.engine.store.read() as tx:
        job = jobs.job_of(jobs.rows(tx, [job_id])[job_id])
        return len(curve(tx, job, "accuracy"))


def test_a_point_that_somebody_kills_has_failed_and_the_study_goes_on(studio: Studio) -> None:
    studio.create(text(command=f"test {{rate}} = 1 && sleep 1000; {SAY}", strategy="grid"))
    studio.until(lambda: bool(studio.points("digits")))
    ana = studio.engine.people["ana"]
    with studio.engine.store.write() as tx:
        kill_job(tx, ana, str(studio.points("digits")[0].job_id))
    studio.until(lambda: len(studio.points("digits")) > 1)
    with studio.engine.store.write() as tx:
        stop_study(tx, ana, "digits")
    studio.until(lambda: all(p.outcome is not None for p in studio.points("digits")))
    first, second = studio.points("digits")
    assert (first.outcome, second.outcome) == (PointOutcome.FAILED, PointOutcome.STOPPED)
    assert studio.study("digits").state is StudyState.STOPPED


@on_both_databases
def test_a_stopped_study_goes_on_and_an_ended_one_takes_a_larger_budget(studio: Studio) -> None:
    ana = studio.engine.people["ana"]
    studio.create(text(strategy="grid", goal="{maximise: accuracy, budget: {count: 2}}"))
    assert len(studio.finish("digits")) == 2
    with studio.engine.store.write() as tx:
        with pytest.raises(Conflict, match="larger budget"):
            start_study(tx, ana, "digits")
        start_study(tx, ana, "digits", budget={"count": 4})
    assert [p.number for p in studio.finish("digits")] == [0, 1, 2, 3]


@on_both_databases
def test_results_go_out_as_csv_and_come_in_once(studio: Studio) -> None:
    ana = studio.engine.people["ana"]
    studio.create(text(goal="{maximise: accuracy, budget: {count: 3}}", strategy="grid"))
    studio.finish("digits")
    with studio.engine.store.write() as tx:
        csv = look.export_csv(tx, studio.study("digits"))
        create_study(tx, ana, "other", study_fields(text()).spec(), start=False)
        assert look.import_csv(tx, ana, "other", csv) == 3
        assert look.import_csv(tx, ana, "other", csv) == 0
        assert look.export_csv(tx, studies.find(tx, ana.project_id, "other")) == csv
        with pytest.raises(InvalidInput, match="line 2"):
            look.import_csv(tx, ana, "other", csv.replace(",1,1,", ",7,1,"))
        with pytest.raises(InvalidInput, match="lacks the columns"):
            look.import_csv(tx, ana, "other", "a,b\n1,2\n")


def test_a_study_starts_warm_from_an_earlier_one(studio: Studio) -> None:
    studio.create(text(goal="{maximise: accuracy, budget: {count: 12}}", strategy="grid", workers=2))
    best = max(studio.finish("digits"), key=lambda p: p.values["accuracy"]).point
    studio.create(text(name="again", goal="{maximise: accuracy, budget: {count: 1}}") + "earlier: [digits]\n")
    (first,) = studio.finish("again")
    assert first.point == best


def test_models_can_be_looked_at_along_one_and_two_dimensions(studio: Studio) -> None:
    goal = "{maximise: accuracy, constraints: [cost <= 1], also: {time: minimise}, budget: {count: 8}}"
    studio.create(text(goal=goal, strategy="lhs", workers=2))
    points = studio.finish("digits")
    with studio.engine.store.read() as tx:
        tuner = look.observed(tx, studio.study("digits"))
    along = look.slice_along(tuner, "rate")
    assert along.values == (1, 2, 3, 4)
    medians = [e.median for e in along.of["accuracy"]]
    assert medians == sorted(medians)
    assert len(along.probability) == 4
    region = look.region_over(tuner, "rate", "depth")
    assert (len(region.probability), len(region.probability[0])) == (3, 4)
    front = look.front(tuner, points)
    assert front[0].values["accuracy"] == max(p.values["accuracy"] for p in points)
    with pytest.raises(InvalidInput, match="not a dimension"):
        look.slice_along(tuner, "nothing")
    with pytest.raises(InvalidInput, match="two different"):
        look.region_over(tuner, "rate", "rate")


def test_what_is_recommended_is_run_as_one_more_point_unless_it_was_measured(studio: Studio) -> None:
    ana = studio.engine.people["ana"]
    studio.create(text(goal="{maximise: accuracy, budget: {count: 2}}", strategy="grid"))
    with studio.engine.store.read() as tx, pytest.raises(Conflict, match="recommends nothing yet"):
        to_verify(tx, ana, "digits")
    assert len(studio.finish("digits")) == 2
    wanted = PointToVerify(studio.study("digits"), 2, {"rate": 4, "depth": 3})
    with studio.engine.store.write() as tx:
        assert start_verifying(tx, ana, wanted).job_id is not None
    with studio.engine.store.write() as tx, pytest.raises(Conflict, match="at the same moment"):
        start_verifying(tx, ana, wanted)  # somebody else had the same idea
    studio.until(lambda: studio.points("digits")[-1].outcome is not None)
    assert studio.points("digits")[-1].values["accuracy"] == 0.43
    with studio.engine.store.read() as tx, pytest.raises(Conflict, match="was measured already"):
        to_verify(tx, ana, "digits")


def test_whoever_may_not_touch_a_study_is_told_so_and_strangers_see_none(studio: Studio) -> None:
    studio.create(text())
    bob = studio.engine.caller("bob")
    eve = studio.engine.caller("eve", project="bio", role=Role.ADMIN)
    with studio.engine.store.write() as tx:
        with pytest.raises(Denied):
            stop_study(tx, bob, "digits")
        with pytest.raises(NotFound):
            stop_study(tx, eve, "digits")


def test_what_no_device_can_hold_is_refused_at_once(studio: Studio) -> None:
    big = text().replace(
        "name: depth, type: ordinal, values: [1, 2, 3]",
        "name: vcpu, type: ordinal, values: [1, 64], role: resource",
    )
    with pytest.raises(InvalidInput, match="largest"):
        studio.create(big)
    with pytest.raises(InvalidInput, match="no strategy"):
        studio.create(text(strategy="magic"))
    with pytest.raises(NotFound):
        studio.create(text() + "earlier: [nobody]\n")


def test_a_strategy_that_breaks_ends_its_own_study_and_nobody_elses(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def suggest(self, state: State) -> PointChoice:
            raise ZeroDivisionError("no pivot")

        def recommend(self, state: State) -> None:
            raise ZeroDivisionError("no pivot")

    monkeypatch.setattr(strategy, "_ADDED", {})  # other tests of this process ask for all names
    register("broken", Broken)
    studio.create(text(name="bad", strategy="broken"))
    studio.create(text(strategy="grid", goal="{maximise: accuracy, budget: {count: 2}}"))
    assert len(studio.finish("digits")) == 2
    assert studio.study("bad").state is StudyState.FINISHED
    assert "ZeroDivisionError: no pivot" in (studio.study("bad").reason or "")


def test_options_that_would_keep_everybody_waiting_are_refused(studio: Studio) -> None:
    with pytest.raises(InvalidInput, match="at most 2"):
        studio.create(text(strategy="nephele") + "options: {horizon: 9}\n")


def test_a_name_is_taken_once(studio: Studio) -> None:
    studio.create(text())
    with pytest.raises(Conflict, match="already"):
        studio.create(text())


@on_both_databases
def test_a_deleted_study_leaves_its_jobs_and_nothing_else(studio: Studio) -> None:
    ana = studio.engine.people["ana"]
    studio.create(text(command="sleep 1000"))
    studio.until(lambda: bool(studio.points("digits")))
    job_id = str(studio.points("digits")[0].job_id)
    with studio.engine.store.write() as tx:
        delete_study(tx, ana, "digits")
    studio.until(lambda: _over(studio, job_id))
    with pytest.raises(NotFound):
        studio.study("digits")


def _over(studio: Studio, job_id: str) -> bool:
    with studio.engine.store.read() as tx:
        return str(jobs.rows(tx, [job_id])[job_id].state) == "killed"

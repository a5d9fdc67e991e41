"""A study inside one process."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import easel
from easel.declare.dimensions import Categorical, Float, Ordinal, fraction
from easel.declare.rates import Rates, Term
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import PointOutcome
from easel.testing.clock import FakeClock
from easel.tune.curves import hopeless
from easel.tune.minimise import RunningTrial

SPACE = Space((Float("x", 0.0, 1.0), Categorical("kind", ("a", "b"))))


def bowl(point: dict[str, Any]) -> float:
    return (float(point["x"]) - 0.3) ** 2 + (0.5 if point["kind"] == "b" else 0.0)


def test_minimise_closes_in_on_the_best_point() -> None:
    study = easel.minimise(bowl, SPACE, budget={"count": 20}, seed=1)
    assert study.best is not None
    assert bowl(dict(study.best.point)) < 0.02
    assert len(study.observations) == 20


def test_maximise_is_its_mirror_image() -> None:
    study = easel.maximise(lambda p: -bowl(p), SPACE, budget={"count": 20}, strategy="ei-c", seed=1)
    assert study.best is not None
    assert bowl(dict(study.best.point)) < 0.02


def test_an_interrupted_study_resumes_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "study.csv"
    whole = easel.minimise(bowl, SPACE, budget={"count": 9}, strategy="ei-c", seed=4)
    easel.minimise(bowl, SPACE, budget={"count": 5}, strategy="ei-c", seed=4, journal=journal)
    resumed = easel.minimise(bowl, SPACE, budget={"count": 9}, strategy="ei-c", seed=4, journal=journal)
    assert [o.point for o in resumed.observations] == [o.point for o in whole.observations]


def test_a_raising_objective_fails_its_trial_only() -> None:
    def fragile(point: dict[str, Any]) -> float:
        if point["kind"] == "b":
            raise MemoryError
        return bowl(point)

    study = easel.minimise(fragile, SPACE, budget={"count": 12}, strategy="lhs")
    outcomes = {o.outcome for o in study.observations}
    assert outcomes == {PointOutcome.COMPLETED, PointOutcome.FAILED}
    assert study.best is not None
    assert study.best.point["kind"] == "a"


def test_time_is_measured_and_cost_follows_from_the_rates() -> None:
    clock = FakeClock()
    space = Space((Ordinal("gpus", (1, 2)),), rates=Rates((Term(rate=3.6, times=("gpus",)),)))

    def job(point: dict[str, Any]) -> float:
        clock.sleep(10.0)
        return 1.0

    study = easel.minimise(job, space, "loss", budget={"cost": 0.025}, strategy="grid", clock=clock)
    assert [study.tuner.state.values(o)["cost"] for o in study.observations] == pytest.approx([0.01, 0.02])
    assert study.reason == "the budget of 0.025 is spent"


def test_a_reporting_trial_is_stopped_when_the_budget_ends() -> None:
    clock = FakeClock()

    def job(point: dict[str, Any], trial: RunningTrial) -> float:
        for epoch in range(100):
            clock.sleep(1.0)
            trial.report(epoch, loss=1.0)
        return 1.0

    study = easel.minimise(job, SPACE, budget={"time": 30.0}, strategy="random", clock=clock)
    assert [o.outcome for o in study.observations] == [PointOutcome.STOPPED]
    assert study.spent == pytest.approx(30.0)


def test_a_hopeless_curve_is_stopped_early() -> None:
    epochs: list[int] = []

    def job(point: dict[str, Any], trial: RunningTrial) -> float:
        value = float(point["x"])
        for epoch in range(10):
            trial.report(epoch, loss=value)
        epochs.append(epoch)
        return value

    study = easel.minimise(job, SPACE, budget={"count": 16}, strategy="lhs")
    stopped = [o for o in study.observations if o.outcome is PointOutcome.STOPPED]
    done = [o for o in study.observations if o.outcome is PointOutcome.COMPLETED]
    assert stopped
    assert min(float(o.point["x"]) for o in stopped) > min(float(o.point["x"]) for o in done)


def test_the_median_rule_needs_company_and_patience() -> None:
    good, poor = {0: 0.1, 1: 0.1, 2: 0.1}, {0: 0.9, 1: 0.9, 2: 0.9}
    assert not hopeless(poor, [good] * 4, larger_is_better=False)
    assert hopeless(poor, [good] * 5, larger_is_better=False)
    assert not hopeless(poor, [good] * 5, larger_is_better=True)
    assert not hopeless({0: 0.9}, [good] * 5, larger_is_better=False)
    assert hopeless({0: math.nan, 1: math.nan}, [good] * 5, larger_is_better=False)


def test_several_workers_share_one_study() -> None:
    study = easel.minimise(bowl, SPACE, budget={"count": 12}, strategy="ei-c", workers=3)
    assert len(study.observations) == 12
    assert len({o.number for o in study.observations}) == 12


def test_subsamples_are_offered_and_the_full_data_recommended() -> None:
    space = Space((Float("x", 0.0, 1.0), fraction("share", (0.1, 0.3, 1.0))))

    def job(point: dict[str, Any]) -> dict[str, float]:
        share = float(point["share"])
        return {"score": 1 - (point["x"] - 0.6) ** 2 - 0.1 * (1 - share), "time": 100 * share}

    study = easel.maximise(job, space, budget={"time": 600.0}, seed=2)
    assert study.best is not None
    assert study.best.point["share"] == 1.0
    assert abs(float(study.best.point["x"]) - 0.6) < 0.15
    assert min(float(o.point["share"]) for o in study.observations) == 0.1


def test_no_workers_is_refused() -> None:
    with pytest.raises(InvalidInput):
        easel.minimise(bowl, SPACE, workers=0)


@pytest.mark.parametrize("returned", [None, "many", {"loss": "low"}])
def test_what_is_no_measurement_fails_the_trial_and_is_told(
    returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidInput, match="the first 3 trials all failed"):
        easel.minimise(lambda point: returned, [Float("x", 0, 1)], budget={"count": 3})
    assert "trial 0 failed" in caplog.text


@pytest.mark.parametrize("returned", [math.nan, math.inf])
def test_what_is_no_number_is_no_failure_and_nothing_is_recommended(returned: float) -> None:
    study = easel.minimise(lambda point: returned, [Float("x", 0, 1)], budget={"count": 3})
    assert len(study.observations) == 3
    assert study.best is None


def test_with_many_workers_the_study_ends_for_the_reason_that_holds_at_the_end() -> None:
    study = easel.minimise(lambda point: point["x"], [Float("x", 0, 1)], workers=8, budget={"count": 10})
    assert study.reason == "the budget of 10 is spent"
    assert study.best is not None
    assert type(study.best.point["x"]) is float


def test_trials_that_all_fail_are_a_slip_that_is_told() -> None:
    def broken(point: dict[str, Any]) -> float:
        raise ValueError("no data")

    with pytest.raises(InvalidInput, match="no data"):
        easel.minimise(broken, SPACE, strategy="random", budget={"count": 10})
    with pytest.raises(InvalidInput, match="they returned los"):
        easel.minimise(lambda point: {"los": 1.0}, SPACE, strategy="random", budget={"count": 10})

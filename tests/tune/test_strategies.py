"""Every strategy keeps the contract."""

from __future__ import annotations

import math

import numpy as np
import pytest

from easel.declare.dimensions import Float, Integer, fraction
from easel.declare.goal import maximise, minimise
from easel.declare.space import Space, point_key
from easel.errors import InvalidInput
from easel.records.study import Finished, Observation, PointOutcome
from easel.testing.strategy import FINITE, GOAL, StrategySuite, measure
from easel.tune.strategies.plain import Random
from easel.tune.strategy import Strategy, make, names, register
from easel.tune.surrogate import learn
from easel.tune.tuner import Tuner

OPTIONS: dict[str, dict[str, object]] = {
    "nephele": {"initial": 4, "horizon": 1},
    "nephele-drop": {"initial": 4},
    "lynceus": {"initial": 3},
    "ei": {"initial": 3},
    "ei-c": {"initial": 3},
    "ei-c-per-cost": {"initial": 3},
    "fabulinus": {"initial": 3},
    "fabolas": {"initial": 3},
}


def _contract(name: str) -> type[StrategySuite]:
    class Kept(StrategySuite):
        def make(self) -> Strategy:
            return make(name, **OPTIONS.get(name, {}))

    return Kept


globals().update({f"Test_{name.replace('-', '_')}": _contract(name) for name in names()})


def test_every_named_strategy_is_under_contract() -> None:
    assert {"auto", "nephele", "fabulinus", "random"} <= set(names())
    assert all(f"Test_{name.replace('-', '_')}" in globals() for name in names())


def test_an_unknown_strategy_or_option_names_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="nephele"):
        make("nepheel")
    with pytest.raises(InvalidInput, match="does not take"):
        make("random", horizon=2)


def test_a_plugin_may_not_hide_a_built_in_strategy() -> None:
    with pytest.raises(InvalidInput):
        register("auto", Random)


def test_lynceus_and_cherrypick_test_the_full_data_only_and_fabulinus_never_does() -> None:
    for name, only_full in (("lynceus", True), ("cherrypick", True), ("ei-c", True), ("fabulinus", False)):
        tuner = Tuner(FINITE, GOAL, name, options=OPTIONS.get(name, {}))
        for _ in range(10):
            answer = tuner.ask()
            assert not isinstance(answer, Finished)
            assert (answer.point["share"] == 1.0) is only_full, name
            tuner.tell(answer.number, measure(answer.point))


def test_nephele_finds_the_cheapest_feasible_point_of_a_small_space() -> None:
    goal = minimise("cost", "accuracy >= 0.85", "time <= 500", budget={"count": 40}, at="any")
    tuner = Tuner(FINITE, goal, "nephele", options={"initial": 6})
    while not isinstance(answer := tuner.ask(), Finished):
        tuner.tell(answer.number, measure(answer.point))
    ok = [(measure(p), p) for p in FINITE.grid()]
    prices = [
        m["time"] * (FINITE.price_per_hour(p) or 0.0) / 3600
        for m, p in ok
        if m["accuracy"] >= 0.85 and m["time"] <= 500
    ]
    best = tuner.recommend()
    assert best is not None
    assert best.observed is not None
    assert best.observed["cost"] == pytest.approx(min(prices))


def test_fabulinus_recommends_a_good_feasible_point_that_it_never_ran() -> None:
    tuner = Tuner(FINITE, maximise("accuracy", "time <= 500"), "fabulinus", seed=1)
    for _ in range(24):
        answer = tuner.ask()
        assert not isinstance(answer, Finished)
        tuner.tell(answer.number, measure(answer.point))
    best = tuner.recommend()
    assert best is not None
    true = measure(best.point)
    assert true["time"] <= 500
    assert true["accuracy"] > 0.85
    assert best.point["share"] == 1.0
    assert best.predicted["accuracy"].low < true["accuracy"] < best.predicted["accuracy"].high + 0.05


def test_expected_improvement_closes_in_on_the_optimum_of_a_continuous_space() -> None:
    space = Space((Float("x", -2.0, 2.0), Float("y", -2.0, 2.0)))
    tuner = Tuner(space, minimise("loss"), "ei-c", options={"initial": 5})
    for _ in range(22):
        answer = tuner.ask()
        assert not isinstance(answer, Finished)
        x, y = float(answer.point["x"]), float(answer.point["y"])
        tuner.tell(answer.number, {"loss": (x - 0.5) ** 2 + (y + 0.3) ** 2})
    best = tuner.recommend()
    assert best is not None
    assert best.observed is not None
    assert best.observed["loss"] < 0.02


def test_hyperband_promotes_the_better_third_of_a_full_bracket() -> None:
    space = Space((Float("x", 0.0, 1.0), fraction("share", (0.25, 0.5, 1.0))))
    tuner = Tuner(space, maximise("score"), "hyperband")
    shares = []
    for _ in range(13):
        answer = tuner.ask()
        assert not isinstance(answer, Finished)
        shares.append(answer.point["share"])
        tuner.tell(answer.number, {"score": float(answer.point["x"])})
    assert shares == [0.25] * 9 + [0.5] * 3 + [1.0]
    top = sorted((float(o.point["x"]) for o in tuner.observations[:9]), reverse=True)
    assert sorted((float(o.point["x"]) for o in tuner.observations[9:12]), reverse=True) == top[:3]
    assert float(tuner.observations[12].point["x"]) == top[0]


def test_hyperband_starts_another_bracket_while_promotions_wait() -> None:
    space = Space((Float("x", 0.0, 1.0), fraction("share", (0.5, 1.0))))
    tuner = Tuner(space, maximise("score"), "hyperband")
    asked = [tuner.ask() for _ in range(4)]
    points = [a.point for a in asked if not isinstance(a, Finished)]
    assert [p["share"] for p in points] == [0.5, 0.5, 0.5, 1.0]


def test_dropping_keeps_poor_configurations_from_larger_samples() -> None:
    space = Space((Integer("k", 1, 30), fraction("share", (0.1, 1.0))))
    goal = minimise("cost", "accuracy >= 0.5", budget={"count": 40}, at="any")
    tuner = Tuner(space, goal, "nephele-drop", options={"initial": 12})
    tried: dict[float, set[int]] = {0.1: set(), 1.0: set()}
    while not isinstance(answer := tuner.ask(), Finished):
        k, share = int(answer.point["k"]), float(answer.point["share"])
        tried[share].add(k)
        tuner.tell(answer.number, {"accuracy": k / 30 * (0.6 + 0.4 * share), "cost": share, "time": share})
    poor = {k for k in tried[0.1] if k <= 5}
    assert not poor & tried[1.0]


def test_cherrypick_may_stop_once_nothing_promises_to_improve() -> None:
    space = Space((Integer("k", 1, 40),))
    tuner = Tuner(space, minimise("cost"), "cherrypick", options={"threshold": 0.5})
    for _ in range(40):
        answer = tuner.ask()
        if isinstance(answer, Finished):
            break
        tuner.tell(answer.number, {"cost": 1.0 + 0.1 * abs(int(answer.point["k"]) - 20)})
    assert 6 <= len(tuner.observations) < 40


def test_pending_points_push_the_next_suggestion_away() -> None:
    space = Space((Float("x", 0.0, 1.0),))
    tuner = Tuner(space, minimise("loss"), "ei-c", options={"initial": 4})
    for x in (0.0, 0.35, 0.65, 1.0):
        tuner.tell({"x": x}, {"loss": (x - 0.5) ** 2})
    first, second = tuner.ask(), tuner.ask()
    assert not isinstance(first, Finished)
    assert not isinstance(second, Finished)
    assert abs(float(first.point["x"]) - float(second.point["x"])) > 0.01


def test_a_failed_trial_is_not_asked_for_again_and_its_spending_counts() -> None:
    goal = minimise("cost", "accuracy >= 0.5", budget={"cost": 1.0}, at="any")
    tuner = Tuner(FINITE, goal, "nephele")
    answer = tuner.ask()
    assert not isinstance(answer, Finished)
    tuner.tell(answer.number, {"cost": 0.75}, PointOutcome.FAILED)
    assert tuner.state.left == pytest.approx(0.25)
    later = [tuner.ask() for _ in range(5)]
    assert point_key(answer.point) not in [point_key(a.point) for a in later if not isinstance(a, Finished)]


def test_suggestions_carry_their_reasons() -> None:
    tuner = Tuner(FINITE, GOAL, "ei-c", options={"initial": 3})
    for _ in range(5):
        answer = tuner.ask()
        assert not isinstance(answer, Finished)
        tuner.tell(answer.number, measure(answer.point))
    answer = tuner.ask()
    assert not isinstance(answer, Finished)
    assert {"score", "runner_up", "predicted_accuracy", "predicted_time"} <= set(answer.why)
    assert float(answer.why["score"]) >= float(answer.why["runner_up"])
    assert all(isinstance(v, str) or math.isfinite(v) for v in answer.why.values())


def test_noise_in_repeated_measurements_does_not_break_the_models() -> None:
    rng = np.random.default_rng(0)
    tuner = Tuner(FINITE, GOAL, "fabulinus", options={"initial": 3})
    point = next(iter(FINITE.grid()))
    for _ in range(6):
        tuner.tell(point, {"accuracy": 0.5 + 0.1 * rng.standard_normal(), "time": 100.0})
    answer = tuner.ask()
    assert not isinstance(answer, Finished)


@pytest.mark.parametrize("name", ["ei-c", "nephele", "auto"])
def test_a_warm_start_begins_with_the_best_of_the_earlier_study(name: str) -> None:
    earlier = [Observation(p, measure(p)) for p in list(FINITE.grid())[::3]]
    foreign = Observation({"colour": "blue"}, {"accuracy": 9.0})
    tuner = Tuner(FINITE, GOAL, name, earlier=[*earlier, foreign])
    first = tuner.ask()
    assert not isinstance(first, Finished)
    feasible = [o for o in earlier if o.values["time"] <= 500]
    best = max(feasible, key=lambda o: o.values["accuracy"])
    expected = FINITE.at_target(best.point) if name == "ei-c" else dict(best.point)
    assert dict(first.point) == expected
    assert tuner.state.spent == 0


def test_models_of_a_warm_started_study_know_what_the_earlier_one_saw() -> None:
    earlier = [
        Observation(p, {**measure(p), "accuracy": measure(p)["accuracy"] - 0.3}) for p in FINITE.grid()
    ]
    warm, cold = (Tuner(FINITE, GOAL, "auto", earlier=e, seed=2) for e in (earlier, []))
    shown = [p for p in FINITE.grid() if p["share"] == 0.1][:4]
    errors = []
    for tuner in (warm, cold):
        for point in shown:
            tuner.tell(point, measure(point))
        table = tuner.problem.codec.table(FINITE.grid())
        believed = learn(tuner.state).beliefs(table).of["accuracy"].mean
        truth = np.array([measure(p)["accuracy"] for p in FINITE.grid()])
        errors.append(float(np.abs(believed - truth).mean()))
    assert errors[0] < 0.5 * errors[1]


def test_auto_chooses_as_ei_c_does_where_constraints_hold_and_no_fidelity_is_cheaper() -> None:
    full = Space(tuple(dimension for dimension in FINITE.dimensions if dimension.name != "share"))
    goal = maximise("accuracy", "time <= 500", budget={"time": 1e6})
    auto, reference = (Tuner(full, goal, name, seed=4) for name in ("auto", "ei-c"))
    for _ in range(10):
        points = []
        for tuner in (auto, reference):
            asked = tuner.ask()
            assert not isinstance(asked, Finished)
            tuner.tell(asked.number, measure({**asked.point, "share": 1.0}))
            points.append(dict(asked.point))
        assert points[0] == points[1]
    assert auto.recommend() == reference.recommend()


def test_auto_without_a_fidelity_tests_what_the_budget_left_pays_for() -> None:
    full = Space(tuple(dimension for dimension in FINITE.dimensions if dimension.name != "share"))
    cheap = min(measure({**point, "share": 1.0})["time"] for point in full.grid())
    spent = 0.0
    budget = 1500.0
    tuner = Tuner(full, maximise("accuracy", "time <= 900", budget={"time": budget}), "auto", seed=1)
    while not isinstance(asked := tuner.ask(), Finished):
        before, took = budget - spent, measure({**asked.point, "share": 1.0})
        tuner.tell(asked.number, took)
        spent += took["time"]
        if len(tuner.observations) > 6 and before > 2 * cheap:
            assert took["time"] < 1.5 * before

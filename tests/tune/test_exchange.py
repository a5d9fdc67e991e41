"""Histories and spaces in other people's formats."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import ConfigSpace as CS  # noqa: N817
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution

from easel.declare.dimensions import Categorical, Float, Integer, Ordinal, When
from easel.declare.goal import maximise
from easel.declare.space import Forbidden, Point, Space
from easel.errors import Conflict, InvalidInput
from easel.records.study import Observation, PointOutcome
from easel.testing.strategy import FINITE, GOAL, measure
from easel.tune.exchange.configspace import from_configspace, to_configspace
from easel.tune.exchange.csv import append_csv, read_csv, write_csv
from easel.tune.exchange.optuna import EaselSampler, from_optuna, to_optuna
from easel.tune.tuner import Tuner

optuna.logging.set_verbosity(optuna.logging.ERROR)

CONDITIONAL = Space(
    (
        Float("rate", 1e-4, 1e-1, log=True),
        Integer("depth", 1, 9),
        Categorical("kind", ("a", "b")),
        Ordinal("size", (16, 256), when=When("kind", ("a",))),
    ),
    (Forbidden({"kind": ("b",), "depth": (9,)}),),
)


def test_a_history_survives_the_way_through_csv(tmp_path: Path) -> None:
    history = [
        Observation({"rate": 1 / 3000, "depth": 2, "kind": "a", "size": 16}, {"loss": 0.1}, number=0),
        Observation(
            {"rate": 1e-2, "depth": 3, "kind": "b"}, {"loss": math.inf, "time": 3.5}, PointOutcome.FAILED, 1
        ),
        Observation({"rate": 1e-2, "depth": 4, "kind": "b"}, {}, PointOutcome.STOPPED),
    ]
    path = tmp_path / "history.csv"
    write_csv(path, history, CONDITIONAL)
    assert read_csv(path, CONDITIONAL) == history


def test_appending_a_row_with_a_new_quantity_keeps_the_old_rows(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    first = Observation({"rate": 1e-2, "depth": 3, "kind": "b"}, {"loss": 1.0}, number=0)
    second = Observation({"rate": 1e-3, "depth": 3, "kind": "b"}, {"loss": 2.0, "memory": 5.0}, number=1)
    append_csv(path, first, CONDITIONAL)
    append_csv(path, second, CONDITIONAL)
    append_csv(path, first, CONDITIONAL)
    assert read_csv(path, CONDITIONAL) == [first, second, first]


def test_a_file_that_lacks_a_dimension_or_holds_nonsense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("number,rate\n0,0.1\n")
    with pytest.raises(InvalidInput, match="lacks the columns"):
        read_csv(path, CONDITIONAL)
    path.write_text("rate,depth,kind,size,measured:loss\n0.1,two,a,16,0.3\n")
    with pytest.raises(InvalidInput, match="line 2"):
        read_csv(path, CONDITIONAL)


def test_a_resumed_study_whose_space_changed_is_refused_with_the_way_out() -> None:
    history = [Observation({"machine": "small", "rate": 0.01, "depth": 1, "share": 1.0}, {"accuracy": 1.0})]
    smaller = Space(tuple(d for d in FINITE.dimensions if d.name != "depth"), rates=FINITE.rates)
    with pytest.raises(Conflict, match="warm start"):
        Tuner.resume(smaller, GOAL, "random", history)


def test_configspace_and_back() -> None:
    made = to_configspace(CONDITIONAL, seed=1)
    assert isinstance(made, CS.ConfigurationSpace)
    back = from_configspace(made)
    assert {d.name: d for d in back.dimensions} == {d.name: d for d in CONDITIONAL.dimensions}
    assert back.forbidden == CONDITIONAL.forbidden
    for configuration in made.sample_configuration(30):
        plain = {k: v.item() if hasattr(v, "item") else v for k, v in dict(configuration).items()}
        assert CONDITIONAL.contains(plain)


def test_optuna_distributions_and_back() -> None:
    space = Space(
        (Float("rate", 1e-4, 1e-1, log=True), Integer("depth", 1, 9, step=2), Categorical("kind", ("a", "b")))
    )
    assert from_optuna(to_optuna(space)) == space
    with pytest.raises(InvalidInput):
        to_optuna(CONDITIONAL)


def test_our_strategies_run_inside_an_optuna_study() -> None:
    study = optuna.create_study(
        direction="minimize", sampler=EaselSampler("ei-c", options={"initial": 4}, seed=1)
    )

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return (x - 0.4) ** 2 + (kind == "b")

    study.optimize(objective, n_trials=18)
    assert study.best_value < 0.02


def test_an_optuna_study_with_our_space_and_goal_is_steered_by_constraints() -> None:
    goal = maximise("accuracy", "time <= 300")
    sampler = EaselSampler("fabulinus", space=FINITE, goal=goal, options={"initial": 3})
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        point: Point = {
            "machine": trial.suggest_categorical("machine", ("small", "large")),
            "rate": trial.suggest_categorical("rate", (0.001, 0.01, 0.1)),
            "depth": trial.suggest_int("depth", 1, 3),
            "share": trial.suggest_categorical("share", (0.1, 0.5, 1.0)),
        }
        values = measure(point)
        trial.set_user_attr("time", values["time"])
        return values["accuracy"]

    study.optimize(objective, n_trials=8)
    assert all(t.params["share"] < 1.0 for t in study.trials)
    assert len({tuple(t.params.values()) for t in study.trials}) == 8


def test_duplicate_and_unknown_reports() -> None:
    tuner = Tuner(FINITE, GOAL, "random")
    answer = tuner.ask()
    assert hasattr(answer, "number")
    tuner.tell(answer.number, {"accuracy": 0.5})
    tuner.tell(answer.number, {"accuracy": 0.9})
    assert [o.values for o in tuner.observations] == [{"accuracy": 0.5}]
    with pytest.raises(InvalidInput, match="tell its point"):
        tuner.tell(99, {"accuracy": 0.1})
    with pytest.raises(InvalidInput):
        tuner.tell({"machine": "huge"}, {"accuracy": 0.1})


def test_a_budget_smaller_than_one_run_limits_that_run() -> None:
    tuner = Tuner(FINITE, maximise("accuracy", budget={"cost": 1e-6}), "auto")
    answer = tuner.ask()
    assert hasattr(answer, "limit")
    assert answer.limit == 1e-6


@pytest.mark.parametrize("strategy", ["fabulinus", "nephele", "hyperband", "cherrypick"])
def test_an_optuna_study_that_prunes_fails_and_branches_goes_on(strategy: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_categorical("note", [None, "some"])
        if trial.suggest_categorical("kind", ["plain", "deep"]) == "deep":
            x += trial.suggest_int("depth", 1, 64, log=True) / 64
        trial.report(x, 1)
        if x > 1.0:
            raise optuna.TrialPruned
        return math.nan if x < 0.05 else x

    study = optuna.create_study(sampler=EaselSampler(strategy, seed=1))
    study.enqueue_trial({"x": 0.5, "kind": "plain", "note": None})
    study.optimize(objective, n_trials=12)
    assert len(study.trials) == 12
    assert study.trials[0].value == 0.5
    assert study.best_value <= 0.5


def test_trials_of_an_optuna_study_that_run_at_once_get_different_points() -> None:
    sampler = EaselSampler("ei", seed=1)
    study = optuna.create_study(sampler=sampler)
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}
    for _ in range(6):
        trial = study.ask(space)
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    asked = [study.ask(space) for _ in range(3)]
    # two threads that ask before the parameters of either are stored
    blind = [study.ask(), study.ask()]
    given = [sampler.sample_relative(study, study.trials[trial.number], space)["x"] for trial in blind]
    assert len({*(trial.params["x"] for trial in asked), *given}) == 5
    assert pickle.loads(pickle.dumps(sampler)).strategy == "ei"


def test_several_objectives_need_a_goal() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=EaselSampler("ei"))
    with pytest.raises(InvalidInput, match="goal"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=3)

"""Define by run: the objective says what it can be given by asking for it."""

from __future__ import annotations

import pytest

import easel
from easel.errors import InvalidInput


def bowl(trial: easel.Trial) -> float:
    return (trial.float("x", -1, 1) - 0.3) ** 2 + (trial.integer("k", 1, 5) - 2) ** 2


def test_values_are_asked_for_as_it_runs_and_the_best_is_found() -> None:
    study = easel.minimise(bowl, budget={"count": 16})
    assert len(study.observations) == 16
    assert min(o.values["loss"] for o in study.observations) < 0.1
    assert study.best is not None
    assert study.best.point["k"] == 2


def test_what_only_some_trials_ask_for_joins_the_space_when_it_is_met() -> None:
    def branching(trial: easel.Trial) -> float:
        if trial.choice("kind", ["flat", "steep"]) == "flat":
            return 1.0 + trial.float("slope", 0, 1)
        return trial.float("rate", 1e-4, 1, log=True)

    study = easel.minimise(branching, budget={"count": 14}, workers=2)
    assert {"kind", "slope", "rate"} == set(study.best.point if study.best else ())
    assert study.best is not None
    assert study.best.point["kind"] == "steep"
    assert sorted(o.number for o in study.observations if o.number is not None) == list(range(14))


def test_one_seed_gives_one_study() -> None:
    one, two = (easel.minimise(bowl, budget={"count": 6}, seed=5) for _ in range(2))
    assert [o.point for o in one.observations] == [o.point for o in two.observations]
    other = easel.minimise(bowl, budget={"count": 6}, seed=6)
    assert [o.point for o in one.observations] != [o.point for o in other.observations]


def test_a_name_whose_choices_change_fails_the_trial_in_words(caplog: pytest.LogCaptureFixture) -> None:
    calls = iter(range(1, 100))
    study = easel.minimise(lambda trial: trial.float("x", 0, next(calls)), budget={"count": 2})
    assert [o.outcome.value for o in study.observations] == ["completed", "failed"]
    assert "choices may not change during a study" in caplog.text


def test_an_objective_that_asks_for_nothing_is_told_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"asked its trial for nothing: call trial\.float"):
        easel.minimise(lambda trial: 1.0)


def test_a_journal_needs_a_space() -> None:
    with pytest.raises(InvalidInput, match="need the space"):
        easel.minimise(bowl, journal="study.csv")

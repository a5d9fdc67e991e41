"""Tables as they come: dates, words, thousands of categories, gaps that mean something, rare classes, many columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.match import worlds

from easel.match.candidate import Candidate
from easel.match.checks import check_columns
from easel.match.encode.tables import MOST_VALUES, MOST_WORDS, date_parts, fit_table
from easel.match.estimators import after_columns
from easel.match.family import MatrixShape
from easel.match.split import assign_folds
from easel.match.summary import strata
from easel.match.train import Conditions, Trained, train

CONDITIONS = Conditions(seed=0, budget_s=60.0, clock=time.monotonic)


def learned(world: worlds.World, family: str, metric: str | None = None) -> Trained:
    program, examples = world
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    conditions = Conditions(0, 60.0, time.monotonic, metric=metric)
    return train(Candidate(family), program, examples, folds, conditions)


def test_the_season_of_a_date_is_learned() -> None:
    days = np.datetime64("2020-01-01") + np.arange(150) * 9
    pairs = [
        ({"day": str(day), "wind": float(k % 7)}, "cold" if int(str(day)[5:7]) in (12, 1, 2) else "warm")
        for k, day in enumerate(days)
    ]
    text = "{input: {[day :: Date, wind :: Number], []}, output: {[Category], []}}"
    assert learned(worlds.world(text, pairs), "lightgbm").measurement.quality > 0.93
    parts = date_parts(np.array([np.datetime64("2026-11-18T06:00").astype("datetime64[s]").astype(float)]))
    assert parts[0, 1:6].tolist() == [2026.0, 11.0, 18.0, 2.0, 6.0]


def test_words_beside_numbers_are_learned_from_and_are_bounded() -> None:
    rng = np.random.default_rng(0)
    rare = [f"word{k}" for k in range(1_000)]
    pairs: list[tuple[Any, str]] = []
    for k in range(120):
        note = " ".join([*rng.choice(rare, 6), "broken" if k % 2 else "fine"])
        pairs.append(({"size": float(rng.normal()), "note": note}, "bad" if k % 2 else "good"))
    world = worlds.world("{input: {[size :: Number, note :: Text], []}, output: {[Category], []}}", pairs)
    assert learned(world, "logistic_regression").measurement.quality > 0.9
    coder = fit_table(world[0].input, [one.input for one in world[1]]).columns[1]
    assert coder.columns == MOST_WORDS


def test_a_category_of_thousands_of_values_takes_two_columns_and_new_values_are_answered() -> None:
    values = [f"v{k}" for k in range(3_000)]
    pairs = [({"who": value, "x": float(k % 5)}, float(k % 5)) for k, value in enumerate(values)]
    program, examples = worlds.world(
        "{input: {[who :: Category, x :: Number], []}, output: {[Number], []}}", pairs
    )
    encoder = fit_table(program.input, [one.input for one in examples])
    assert len(encoder.columns[0].vocabulary) == MOST_VALUES
    assert encoder([one.input for one in examples[:4]]).shape == (4, 3)
    _, new = worlds.world(str(program), [({"who": "never", "x": 1.0}, 0.0)])
    assert np.isnan(encoder([new[0].input])[0, 0])


def test_a_gap_that_means_something_is_learned_from() -> None:
    rng = np.random.default_rng(0)
    pairs = [
        ({"x": None if k % 3 == 0 else float(rng.normal())}, "no" if k % 3 == 0 else "yes")
        for k in range(120)
    ]
    world = worlds.world("{input: {[x :: Number?], []}, output: {[Category], []}}", pairs)
    for family in ("logistic_regression", "lightgbm"):
        assert learned(world, family).measurement.quality > 0.95


def test_a_class_of_one_percent_is_found_where_the_metric_asks_for_it() -> None:
    rng = np.random.default_rng(0)
    ill = [k % 100 == 0 for k in range(900)]
    pairs = [([float(rng.normal() + 3 * one), float(rng.normal())], "ill" if one else "well") for one in ill]
    world = worlds.world("{input: {[Tensor[2]], []}, output: {[Category], []}}", pairs)
    found = learned(world, "logistic_regression", "balanced_accuracy").measurement
    assert found.quality > 0.75, "a half is what always saying well scores"
    assert found.baseline == pytest.approx(0.5)


def test_a_column_that_is_always_the_same_is_said_to_be_and_does_no_harm() -> None:
    pairs = [({"x": float(k % 2), "same": 7.0}, "ab"[k % 2]) for k in range(120)]
    world = worlds.world("{input: {[x :: Number, same :: Number], []}, output: {[Category], []}}", pairs)
    told = check_columns(world[0], world[1], [f"{k:x}" for k in range(120)])
    assert any(one.kind == "constant" and one.column == "same" for one in told)
    for family in ("logistic_regression", "svm", "lightgbm"):
        assert learned(world, family).measurement.quality == 1.0


def test_many_columns_are_learned_from() -> None:
    """The small form of `python -m benchmarks.tables`."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1_000))
    pairs = [(row, "yes" if row[:20].sum() > 0 else "no") for row in x]
    world = worlds.world("{input: {[Tensor[1000]], []}, output: {[Category], []}}", pairs)
    found = learned(world, "logistic_regression").measurement
    assert found.validated_on == 60


@pytest.mark.parametrize(("categories", "most"), [(5, 5 * 40), (400, 400 * 20), (3_000, 3_000 * 4)])
def test_many_categories_are_spread_over_a_bounded_number_of_columns(categories: int, most: int) -> None:
    """Of 2,500 categories of 40 values each a matrix of 100,000 columns took four times the memory asked for."""
    x = np.random.default_rng(0).integers(40, size=(400, categories)).astype(float)
    shape = MatrixShape((True,) * categories, classify=True, outputs=1, seed=0)
    spread = after_columns(LogisticRegression(), shape).named_steps["columns"].fit_transform(x)
    assert spread.shape == (400, most)

"""Exact Shapley values: they add up to the answer, agree with brute force, and name what moved it."""

from __future__ import annotations

import time
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from tests.match import worlds

from easel.match.candidate import Candidate
from easel.match.contributions import Shapley, additive, matrix_columns, reasons, shapley_of, summed_up
from easel.match.estimator_body import EstimatorBody, matrix
from easel.match.findings import examine
from easel.match.model import Model
from easel.match.registry import all_families
from easel.match.train import Conditions, train

CONDITIONS = Conditions(seed=0, budget_s=60.0, clock=time.monotonic)


def trained(world: worlds.World, family: str) -> Model:
    if not all_families()[family].installed:
        pytest.skip(f"{family} is not installed")
    program, examples = world
    settings = (("trees", 30),) if family == "catboost" else ()
    return train(
        Candidate(family, settings), program, examples, [k % 2 for k in range(len(examples))], CONDITIONS
    ).model


def told(world: worlds.World, family: str) -> tuple[Shapley, Model]:
    program, examples = world
    model = trained(world, family)
    inputs = [one.input for one in examples]
    found = shapley_of(model, program.input, inputs[:20], inputs)
    assert isinstance(found, Shapley)
    return found, model


@pytest.mark.parametrize("family", ["lightgbm", "catboost", "linear"])
def test_of_numbers_values_and_their_mean_add_up_to_the_answer(family: str) -> None:
    world = worlds.line()
    found, model = told(world, family)
    answers = model.predict([one.input for one in world[1][:20]])[:, 0]
    rest = answers - found.values.sum((1, 2))
    assert np.ptp(rest) < 1e-5, "what is left is the same for all: the mean answer"
    assert found.unit == "the answered number"
    assert summed_up([found])[0]["direction"] > 0.9


@pytest.mark.parametrize("family", ["lightgbm", "catboost", "logistic_regression"])
def test_of_classes_they_add_up_to_the_log_odds_with_gaps_and_categories(family: str) -> None:
    world = worlds.table()
    found, model = told(world, family)
    body = model.body
    assert isinstance(body, EstimatorBody)
    assert found.columns == ("size", "town")
    p = body.estimator.predict_proba(matrix(model.source, [one.input for one in world[1][:20]]))[:, 1]
    rest = np.log(p / (1 - p)) - found.values.sum((1, 2))
    assert np.ptp(rest) < 1e-5
    assert found.unit == "log-odds of yes"


def test_additive_values_are_those_of_every_order_of_the_columns() -> None:
    """Brute force over all subsets, with the background's mean for what is not yet known (Shapley 1953)."""
    rng = np.random.default_rng(0)
    x, background = rng.normal(size=(4, 3)), rng.normal(size=(50, 3))

    def decision(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows[:, 0] ** 2 - 2 * rows[:, 1], np.sin(rows[:, 2])], 1)

    found = additive(decision, x, background)
    for row in range(4):

        def worth(known: tuple[int, ...], row: int = row) -> np.ndarray:
            mixed = background.copy()
            mixed[:, list(known)] = x[row, list(known)]
            mean: np.ndarray = decision(mixed).mean(0)
            return mean

        for j in range(3):
            others = [k for k in range(3) if k != j]
            value = sum(
                factorial(size) * factorial(2 - size) / factorial(3) * (worth((*s, j)) - worth(s))
                for size in range(3)
                for s in combinations(others, size)
            )
            np.testing.assert_allclose(found[row, j], value, atol=1e-9)


def test_several_classes_and_vectors_have_values_of_their_own() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    labels = ["abc"[int(np.argmax(row))] for row in x]
    text = "{input: {[x :: Tensor[3]], []}, output: {[Category], []}}"
    world = worlds.world(text, list(zip(x, labels, strict=True)))
    found, model = told(world, "lightgbm")
    assert found.values.shape == (20, 3, 3)
    assert matrix_columns(world[0].input, model.source) == ["x[0]", "x[1]", "x[2]"]
    answered = int(model.predict([world[1][0].input])[0].argmax())
    first = reasons(found, 0, answered)[0]
    assert first["column"] == f"x[{answered}]"
    assert first["by"] > 0


def test_a_report_tells_them_and_says_where_there_are_none() -> None:
    program, examples = worlds.table()
    folds, digests = [k % 5 for k in range(len(examples))], [f"{k:x}" for k in range(len(examples))]
    found = examine(Candidate("logistic_regression"), program, examples, folds, digests, CONDITIONS)
    assert {one["column"] for one in found["contributions"]} == {"size", "town"}
    assert found["contributions_of"] == "log-odds of yes"
    assert found["worst_examples"][0]["because"]
    none = examine(Candidate("svm"), program, examples, folds, digests, CONDITIONS)
    assert none["contributions"] == []
    assert "svm has no exact Shapley values" in none["no_contributions"]
    assert "lightgbm" in none["no_contributions"]

"""Costs of mistakes as a metric: how they are written, what answers they lead to, and how a trial is scored by them."""

from __future__ import annotations

import numpy as np
import pytest

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.costs import by_number, cheapest, largest_cost, negative_cost
from easel.match.judge import baseline, score
from easel.match.kinds import Task
from easel.match.metrics import ceiling, interval, metric_for
from easel.match.model import present
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import strata
from easel.match.train import Conditions, train

SICK = "cost(sick as healthy: 10, healthy as sick: 1)"


def test_costs_have_one_spelling_and_names_with_spaces_are_quoted() -> None:
    name, _ = metric_for(Task.CLASSIFY, ' cost( "very sick" as healthy :10,healthy as "very sick": 0.5 ) ')
    assert name == 'negative_cost("very sick" as healthy: 10, healthy as "very sick": 0.5)'
    assert metric_for(Task.CLASSIFY, name)[0] == name
    assert by_number(name, ["healthy", "very sick"]) == "negative_cost(1 as 0: 10, 0 as 1: 0.5)"
    assert largest_cost(name) == 10
    assert by_number("accuracy", ["a"]) == "accuracy"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cost", "write costs like"),
        ("cost(sick healthy 10)", "cannot read"),
        ("cost(sick as healthy: much)", "not a number"),
        ("cost(sick as healthy: -1)", "between 0 and"),
        ("cost(sick as sick: 1)", "costs nothing"),
        ("cost(a as b: 1, a as b: 2)", "given twice"),
        ("cost(a as b: 0)", "no mistake costs anything"),
        ("cost()", "no mistake costs anything"),
    ],
)
def test_costs_that_cannot_be_meant_are_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        metric_for(Task.CLASSIFY, text)


def test_costs_are_for_classes_and_of_known_classes_only() -> None:
    with pytest.raises(InvalidInput, match="regression has the metrics"):
        metric_for(Task.REGRESS, SICK)
    with pytest.raises(
        InvalidInput, match="the costs name sick, which is no class; the classes are healthy, ill"
    ):
        by_number(metric_for(Task.CLASSIFY, SICK)[0], ["healthy", "ill"])


def test_the_answer_is_the_class_of_least_expected_cost_and_unnamed_mistakes_cost_1() -> None:
    metric = "negative_cost(1 as 0: 10)"
    doubtful = np.array([[0.85, 0.15, 0.0], [0.95, 0.05, 0.0]])
    assert cheapest(metric, doubtful).argmax(1).tolist() == [1, 0]
    assert negative_cost(metric, np.array([0, 0]), doubtful) == -0.5
    assert score(Task.CLASSIFY, metric, np.array([0, 1]), doubtful) == -5.5
    assert baseline(Task.CLASSIFY, metric, np.array([0, 0, 0, 1]), 3) == -0.75
    assert ceiling(metric) == 0.0
    assert interval("accuracy", 0.99, 0.02)[1] == 1.0
    assert interval(metric, -0.1, 0.2)[1] == 0.0


def test_a_trial_is_scored_by_its_costs_and_its_model_answers_by_them() -> None:
    rng = np.random.default_rng(0)
    program = parse_program("{input: {[x :: Number], []}, output: {[Category], []}}")
    x = rng.normal(size=240)
    sick = rng.random(240) < 1 / (1 + np.exp(-2 * (x - 1.5)))
    examples = [read_example(program, v, "sick" if s else "healthy") for v, s in zip(x, sick, strict=True)]
    folds = assign_folds(strata(program, examples))
    candidate = Candidate("logistic_regression", (("C", 1.0),))
    conditions = Conditions(0, 60.0, lambda: 0.0, metric=SICK)
    trained = train(candidate, program, examples, folds, conditions)
    found = trained.measurement
    assert found.metric == metric_for(Task.CLASSIFY, SICK)[0]
    assert found.quality == found.scores[found.metric]
    assert found.baseline is not None
    assert found.baseline < found.quality < 0
    raw = np.array([[0.8, 0.2]])
    assert present(trained.model, raw, found.metric)[0]["label"] == "sick"
    assert present(trained.model, raw, "accuracy")[0]["label"] == "healthy"

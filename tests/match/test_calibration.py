"""Probabilities mean what they say for every family of tables, for several answers, and for ensembles."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.match import worlds

from easel.match.candidate import Candidate
from easel.match.ensemble import Answered, mix, side_by_side
from easel.match.findings import calibration_bins
from easel.match.judge import calibrate
from easel.match.kinds import Task
from easel.match.registry import all_families
from easel.match.train import Conditions, Trained, train

CONDITIONS = Conditions(seed=0, budget_s=60.0, clock=time.monotonic, epochs=12)
FAMILIES = (
    *("logistic_regression", "svm", "extra_trees", "lightgbm", "boosted_trees", "bayes_point"),
    *("averaged_perceptron", "neural_network", "tabm", "catboost"),
)
ONE = "{input: {[Tensor[4]], []}, output: {[Category[no, yes]], []}}"
TWO = "{input: {[Tensor[4]], []}, output: {[a :: Category[no, yes], b :: Category[no, yes]], []}}"


def noisy(count: int, seed: int, *, several: bool = False) -> worlds.World:
    """Answers that a fifth of the time are not what the numbers say."""
    rng = np.random.default_rng(seed)
    pairs = []
    for row in rng.normal(size=(count, 4)):
        p = 1 / (1 + np.exp(-2 * (row[0] + row[1])))
        a = "yes" if rng.random() < p else "no"
        b = "yes" if rng.random() < 1 / (1 + np.exp(-2 * row[2])) else "no"
        pairs.append((row, {"a": a, "b": b} if several else a))
    return worlds.world(TWO if several else ONE, pairs)


def off(truth: np.ndarray, probabilities: np.ndarray) -> float:
    return sum(b["share"] * abs(b["right"] - b["said"]) for b in calibration_bins(truth, probabilities))


def learned(world: worlds.World, family: str) -> Trained:
    if not all_families()[family].installed:
        pytest.skip(f"{family} is not installed")
    settings = (("trees", 40),) if family in ("extra_trees", "catboost") else ()
    return train(Candidate(family, settings), *world, [k % 5 for k in range(len(world[1]))], CONDITIONS)


@pytest.mark.parametrize("family", FAMILIES)
def test_on_new_examples_it_is_right_about_as_often_as_it_says(family: str) -> None:
    found = learned(noisy(400, 0), family)
    _, new = noisy(1_500, 1)
    truth = found.model.target([one.output for one in new])
    # the bar at 500 examples is .05; a test of 1,500 in ten bins adds about .02 by its own sampling
    assert off(truth, found.model.predict([one.input for one in new])) <= 0.07


def test_of_several_answers_the_combinations_are_calibrated() -> None:
    found = learned(noisy(500, 0, several=True), "lightgbm")
    _, new = noisy(1_500, 1, several=True)
    known = set(found.model.target.names)
    assert len(known) == 4
    truth = found.model.target([one.output for one in new])
    assert off(truth, found.model.predict([one.input for one in new])) <= 0.07


def test_an_ensemble_is_calibrated_as_a_whole() -> None:
    """The mean of members that err differently is less sure than it may be, until the whole is calibrated."""
    world = noisy(400, 0)
    members = [learned(world, family) for family in ("logistic_regression", "lightgbm", "bayes_point")]
    shared = side_by_side(
        {str(k): Answered(one.learned.validated, one.learned.predicted) for k, one in enumerate(members)}
    )
    truth = members[0].model.target([world[1][row].output for row in shared.rows])
    mixture = mix(Task.CLASSIFY, "negative_log_loss", truth, shared.predicted, shared.by_example)
    calibration = calibrate(Task.CLASSIFY, truth, mixture.predicted, len(shared.by_example))
    _, new = noisy(1_500, 1)
    inputs = [one.input for one in new]
    raw = np.sum(
        [w * members[int(name)].model.predict(inputs) for name, w in mixture.weights.items()], axis=0
    )
    right = members[0].model.target([one.output for one in new])
    assert off(right, calibration.apply(raw)) <= 0.06

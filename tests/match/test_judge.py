"""Scores, their error, baselines, calibration and decisions, against scikit-learn and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from easel.errors import InvalidInput
from easel.match.fitting import FEWEST_TO_PART, inner_split
from easel.match.judge import (
    baseline,
    calibrate,
    chosen_apart,
    conformal_margins,
    fit_temperature,
    sampling_error,
    score,
    tempered,
)
from easel.match.kinds import Task
from easel.match.metrics import METRICS, interval, metric_for

CLASSIFY, REGRESS = Task.CLASSIFY, Task.REGRESS


def answers(n: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and truths drawn from them: they mean what they say."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(classes, 0.6), size=n)
    truth = np.array([rng.choice(classes, p=row) for row in probabilities])
    return truth, probabilities


@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_agree_with_scikit_learn(classes: int) -> None:
    truth, p = answers(300, classes)
    p = p.round(1) / p.round(1).sum(1, keepdims=True)
    judged = p[:, 1] if classes == 2 else p
    assert score(CLASSIFY, "roc_auc", truth, p) == pytest.approx(
        reference.roc_auc_score(truth, judged, multi_class="ovr")
    )
    rare = int(np.bincount(truth).argmin())
    average = "binary" if classes == 2 else "macro"
    assert score(CLASSIFY, "f1", truth, p) == pytest.approx(
        reference.f1_score(truth, p.argmax(1), average=average, pos_label=rare if classes == 2 else 1)
    )
    if classes == 2:
        assert score(CLASSIFY, "average_precision", truth, p) == pytest.approx(
            reference.average_precision_score(truth == rare, p[:, rare])
        )


def test_regression_metrics_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 5, (200, 1))
    guess = y + rng.normal(size=y.shape)
    assert score(REGRESS, "negative_mape", y, guess) == pytest.approx(
        -reference.mean_absolute_percentage_error(y, guess)
    )
    assert score(REGRESS, "negative_quantile_0.9", y, guess) == pytest.approx(
        -reference.mean_pinball_loss(y, guess, alpha=0.9)
    )


def test_an_error_may_be_named_without_its_sign() -> None:
    assert metric_for(REGRESS, "mae")[0] == "negative_mae"
    assert metric_for(CLASSIFY, "log_loss")[0] == "negative_log_loss"
    with pytest.raises(InvalidInput, match="has the metrics"):
        metric_for(CLASSIFY, "mae")


def test_boastful_probabilities_are_brought_back_to_what_they_were() -> None:
    truth, honest = answers(4000, 3)
    boastful = tempered(honest, 0.4)
    assert fit_temperature(truth, boastful) == pytest.approx(2.5, rel=0.1)
    restored = calibrate(CLASSIFY, truth, boastful).apply(boastful)
    assert np.abs(restored - honest).mean() < 0.02


def test_a_class_that_was_never_seen_keeps_probability_zero() -> None:
    assert tempered(np.array([[0.3, 0.7, 0.0]]), 2.0)[0, 2] == 0.0


def test_rare_classes_are_found_where_the_metric_asks_for_them() -> None:
    rng = np.random.default_rng(1)
    truth = (rng.random(4000) < 0.03).astype(int)
    evidence = rng.normal(size=4000) + 2.0 * truth
    odds = 0.03 / 0.97 * np.exp(2.0 * evidence - 2.0)
    p = np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)
    found = chosen_apart(truth, p)
    assert score(CLASSIFY, "balanced_accuracy", truth, p) < 0.65
    assert score(CLASSIFY, "balanced_accuracy", truth, p, found) > 0.8
    assert score(CLASSIFY, "f1", truth, p, found) > score(CLASSIFY, "f1", truth, p)
    assert score(CLASSIFY, "accuracy", truth, p, found) == score(CLASSIFY, "accuracy", truth, p)


def test_the_best_threshold_is_not_scored_by_the_examples_that_it_was_fitted_to() -> None:
    """With fifteen examples of the rare class the F₁ of the fitted threshold was .09 too high."""
    gaps = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        truth = (rng.random(1_150) < 0.1).astype(int)
        odds = np.exp(rng.normal(size=1_150) + truth - 2.5)
        p = np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)
        y, guess, new, asked = truth[:150], p[:150], truth[150:], p[150:]
        served = calibrate(CLASSIFY, y, guess)
        shown = score(CLASSIFY, "f1", y, guess, chosen_apart(y, guess))
        gaps.append(shown - METRICS[CLASSIFY]["f1"](new, served.chosen(asked, "f1")))
    assert abs(float(np.mean(gaps))) < 0.03


def test_all_answers_to_one_example_are_decided_by_the_same_thresholds() -> None:
    truth, p = answers(30, 2)
    by_example = np.arange(30).reshape(15, 2)
    found = chosen_apart(truth, p, by_example)["balanced_accuracy"] / p
    ratio = found[:, 0] / found[:, 1]
    np.testing.assert_allclose(ratio[::2], ratio[1::2])
    assert len(np.unique(ratio.round(9))) <= 5
    assert chosen_apart(truth[:8], p[:8]) == {}


def test_intervals_cover_nine_truths_of_ten() -> None:
    rng = np.random.default_rng(2)
    errors = rng.standard_t(3, size=(5000, 1))
    (margin,) = conformal_margins(errors[:500], np.zeros((500, 1)))
    assert 0.86 <= float(np.mean(np.abs(errors[500:]) <= margin)) <= 0.94


def test_the_sampling_error_of_an_accuracy_is_that_of_a_share() -> None:
    truth, p = answers(400, 2)
    share = score(CLASSIFY, "accuracy", truth, p)
    expected = (share * (1 - share) / len(truth)) ** 0.5
    assert sampling_error(CLASSIFY, "accuracy", truth, p) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("examples", [20, 200])
def test_a_score_without_a_mistake_has_a_range_all_the_same(examples: int) -> None:
    truth = np.arange(examples) % 2
    error = sampling_error(CLASSIFY, "accuracy", truth, np.eye(2)[truth])
    low, high = interval("accuracy", 1.0, error)
    assert high == 1.0
    assert 1 - 3 / examples < low < 1 - 1 / examples, "up to one or two mistakes among as many new ones"


def test_the_baseline_is_the_score_of_one_answer_for_all() -> None:
    truth = np.array([0] * 90 + [1] * 10)
    assert baseline(CLASSIFY, "accuracy", truth, 2) == 0.9
    assert baseline(CLASSIFY, "roc_auc", truth, 2) == 0.5
    assert baseline(CLASSIFY, "balanced_accuracy", truth, 2) == 0.5
    values = np.arange(10.0)[:, None]
    assert baseline(REGRESS, "r2", values) == pytest.approx(0.0)
    assert baseline(REGRESS, "negative_mae", values) == -2.5


def test_every_metric_has_a_baseline_and_an_error() -> None:
    truth, p = answers(60, 3)
    values = np.random.default_rng(0).normal(size=(60, 2))
    for task, y, guess in ((CLASSIFY, truth, p), (REGRESS, values, values + 1.0)):
        for name in METRICS[task]:
            assert np.isfinite(baseline(task, name, y, 3) or 0.0)
            assert np.isfinite(sampling_error(task, name, y, guess))


def test_a_round_chooses_its_epoch_by_examples_of_its_own_of_every_class() -> None:
    rows = np.arange(100, 500)
    labels = np.arange(500) % 4
    learn, stop = inner_split(rows, labels)
    assert sorted([*learn, *stop]) == rows.tolist()
    assert len(stop) == 50
    assert np.bincount(labels[stop]).min() >= 11
    few = np.arange(FEWEST_TO_PART - 1)
    assert inner_split(few, None)[1].tolist() == few.tolist()

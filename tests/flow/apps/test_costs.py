"""Estimates of cost, corrected by what trials took; qualities of any metric as scores."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from easel.flow.apps.costs import calibrated
from easel.flow.apps.pool import as_scores
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.records.app import AppTrial


def took(seconds: float, quality: float | None = 0.5) -> AppTrial:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return AppTrial(AppId("app"), JobId("job"), {}, {}, now, 10, True, quality, seconds, None)


def test_without_trials_the_estimates_stand() -> None:
    assert [c.cost_s for c in calibrated([Candidate("svm", cost_s=4.0)], [])] == pytest.approx([4.0])


def test_a_family_that_takes_longer_is_expected_to_take_longer_again() -> None:
    pool = [Candidate("svm", cost_s=2.0), Candidate("linear", cost_s=2.0)]
    past = [(Candidate("svm", cost_s=1.0), took(8.0))] * 6 + [
        (Candidate("linear", cost_s=1.0), took(1.0))
    ] * 6
    slow, quick = calibrated(pool, past)
    assert slow.cost_s > 10.0
    assert quick.cost_s < 3.0


def test_a_family_not_tried_yet_follows_the_machine() -> None:
    past = [(Candidate("svm", cost_s=1.0), took(3.0))] * 10
    (new,) = calibrated([Candidate("linear", cost_s=1.0)], past)
    assert new.cost_s > 2.0


def test_a_failed_trial_says_nothing_about_cost() -> None:
    past = [(Candidate("svm", cost_s=1.0), took(100.0, None))]
    assert calibrated([Candidate("svm", cost_s=1.0)], past)[0].cost_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("metric", "worse", "better"),
    [("accuracy", 0.3, 0.4), ("r2", -7.0, 0.1), ("negative_rmse", -54.0, -50.0), ("psnr", 20.0, 30.0)],
)
def test_a_better_quality_is_a_better_score_between_0_and_1(metric: str, worse: float, better: float) -> None:
    scores = as_scores(metric, {"a": worse, "b": better})
    assert 0.0 <= scores["a"] < scores["b"] <= 1.0

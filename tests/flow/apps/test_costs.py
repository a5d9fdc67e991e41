"""Estimates of cost, corrected by what trials took; qualities of any metric as scores."""

from __future__ import annotations

import pytest

from easel.flow.apps.costs import REMEMBERED, calibrated
from easel.flow.apps.pool import as_scores
from easel.match.candidate import Candidate


def costs(pool: list[Candidate], ran: list[tuple[Candidate, float]]) -> list[float]:
    return [candidate.cost_s for candidate in calibrated({"app": pool}, ran)["app"]]


def test_without_trials_the_estimates_stand() -> None:
    assert costs([Candidate("svm", cost_s=4.0)], []) == pytest.approx([4.0])


def test_a_family_that_takes_longer_is_expected_to_take_longer_again() -> None:
    pool = [Candidate("svm", cost_s=2.0), Candidate("linear", cost_s=2.0)]
    past = [(Candidate("svm", cost_s=1.0), 8.0), (Candidate("linear", cost_s=1.0), 1.0)] * 6
    slow, quick = costs(pool, past)
    assert slow > 10.0
    assert quick < 3.0


def test_a_family_not_tried_yet_follows_the_machine() -> None:
    (new,) = costs([Candidate("linear", cost_s=1.0)], [(Candidate("svm", cost_s=1.0), 3.0)] * 10)
    assert 1.5 < new < 3.0


def test_what_one_app_found_about_cost_holds_for_another() -> None:
    pools = {"mine": [Candidate("svm", cost_s=1.0)], "other": [Candidate("svm", cost_s=10.0)]}
    found = calibrated(pools, [(Candidate("svm", cost_s=1.0), 5.0)] * 20)
    assert found["other"][0].cost_s == pytest.approx(10 * found["mine"][0].cost_s)


def test_the_newest_trials_count_and_one_without_a_time_does_not() -> None:
    old = [(Candidate("svm", cost_s=1.0), 100.0)] * 5
    new = [(Candidate("svm", cost_s=1.0), 1.0)] * REMEMBERED
    assert costs([Candidate("svm", cost_s=1.0)], old + new) == pytest.approx([1.0], rel=0.01)
    assert costs([Candidate("svm", cost_s=1.0)], [(Candidate("svm", cost_s=1.0), 0.0)]) == pytest.approx(
        [1.0]
    )


@pytest.mark.parametrize(
    ("metric", "worse", "better"),
    [("accuracy", 0.3, 0.4), ("r2", -7.0, 0.1), ("negative_rmse", -54.0, -50.0), ("psnr", 20.0, 30.0)],
)
def test_a_better_quality_is_a_better_score_between_0_and_1(metric: str, worse: float, better: float) -> None:
    scores = as_scores(metric, {"a": worse, "b": better})
    assert 0.0 <= scores["a"] < scores["b"] <= 1.0

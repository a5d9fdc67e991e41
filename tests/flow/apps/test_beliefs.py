"""What past trials say of quality, seconds and memory; qualities of any metric as scores."""

from __future__ import annotations

import numpy as np
import pytest

from easel.flow.apps.beliefs import REMEMBERED, Costs, PromiseBook
from easel.ids import AppId
from easel.match.candidate import Candidate
from easel.match.scores import as_scores
from easel.match.summary import DataSummary
from easel.records.tenant import PastTrial

SMALL = DataSummary(examples=100, cells=4)


def past(
    candidate: str, seconds: float, *, app: str = "app", guess: float = 1.0, quality: float | None = 0.5
) -> PastTrial:
    return PastTrial(
        0, AppId(app), "accuracy", candidate, candidate, 0.5, guess, quality, seconds, 3000.0, 100
    )


def costs(pool: list[Candidate], ran: list[PastTrial]) -> list[float]:
    return [float(seconds) for seconds in Costs(ran).seconds(pool)]


def test_without_trials_the_estimates_stand() -> None:
    assert costs([Candidate("svm", cost_s=4.0)], []) == pytest.approx([4.0])


def test_a_family_that_takes_longer_is_expected_to_take_longer_again() -> None:
    pool = [Candidate("svm", cost_s=2.0), Candidate("linear", cost_s=2.0)]
    slow, quick = costs(pool, [past("svm", 8.0), past("linear", 1.0)] * 6)
    assert slow > 10.0
    assert quick < 3.0


def test_a_family_not_tried_yet_follows_the_machine() -> None:
    (new,) = costs([Candidate("linear", cost_s=1.0)], [past("svm", 3.0)] * 10)
    assert 1.5 < new < 3.0


def test_what_one_app_found_about_cost_holds_for_another() -> None:
    found = Costs([past("svm", 5.0)] * 20)
    mine, other = (
        found.seconds([Candidate("svm", cost_s=1.0)]),
        found.seconds([Candidate("svm", cost_s=10.0)]),
    )
    assert other[0] == pytest.approx(10 * mine[0])


def test_the_newest_trials_count_and_one_without_a_time_does_not() -> None:
    old, new = [past("svm", 100.0)] * 5, [past("svm", 1.0)] * REMEMBERED
    assert costs([Candidate("svm", cost_s=1.0)], old + new) == pytest.approx([1.0], rel=0.01)
    assert costs([Candidate("svm", cost_s=1.0)], [past("svm", 0.0)]) == pytest.approx([1.0])


def test_a_trial_that_was_ended_far_beyond_its_estimate_makes_the_next_estimate_longer() -> None:
    ended = [past("svm", 60.0, quality=None)] * 3
    (after,) = costs([Candidate("svm", cost_s=1.0)], ended)
    assert after > 20.0
    broke_at_once = [past("svm", 0.4, quality=None)] * 3
    assert costs([Candidate("svm", cost_s=1.0)], broke_at_once) == pytest.approx([1.0])


def test_memory_grows_with_the_data_and_with_what_the_app_was_seen_to_need() -> None:
    candidates = [Candidate("svm"), Candidate("convnet")]
    small, network = Costs([]).needs("app", candidates, SMALL)
    assert small.memory_mb < network.memory_mb
    (large, _) = Costs([]).needs("app", candidates, DataSummary(examples=100_000, cells=2000))
    assert large.memory_mb > 10_000
    (seen, _) = Costs([past("svm", 1.0)]).needs("app", candidates, SMALL)
    assert seen.memory_mb >= 3000
    assert Costs([past("svm", 1.0)]).needs("other", candidates, SMALL)[0] == small


def test_what_other_apps_found_moves_the_prior_and_what_the_app_found_itself_does_not() -> None:
    candidates = (Candidate("svm"), Candidate("linear"))
    found = [
        past(name, 1.0, app=f"app_{k}", quality=quality)
        for k in range(6)
        for name, quality in (("svm", 0.9), ("linear", 0.5))
    ]
    plain = PromiseBook([]).prior("mine", candidates, SMALL)
    informed = PromiseBook(found).prior("mine", candidates, SMALL)
    assert plain.mean[0] == plain.mean[1]
    assert informed.mean[0] > informed.mean[1] + 0.1
    assert np.linalg.eigvalsh(plain.cov).min() > 0
    alone = PromiseBook([one for one in found if one.app_id == "app_0"]).prior("app_0", candidates, SMALL)
    assert alone.mean.tolist() == pytest.approx(plain.mean.tolist())


def test_a_history_of_renamed_candidates_and_of_no_numbers_changes_nothing() -> None:
    candidates = (Candidate("svm"), Candidate("linear"))
    odd = [past("gone(x=1)", 1.0), past("older", 1.0, quality=float("nan")), past("svm", 1.0, quality=None)]
    found = PromiseBook(odd).prior("mine", candidates, SMALL)
    assert found.mean.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("metric", "worse", "better"),
    [("accuracy", 0.3, 0.4), ("r2", -7.0, 0.1), ("negative_rmse", -54.0, -50.0), ("psnr", 20.0, 30.0)],
)
def test_a_better_quality_is_a_better_score_between_0_and_1(metric: str, worse: float, better: float) -> None:
    scores = as_scores(metric, {"a": worse, "b": better})
    assert 0.0 <= scores["a"] < scores["b"] <= 1.0

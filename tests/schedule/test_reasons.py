"""What was weighed, in words that do not contradict themselves."""

from __future__ import annotations

from dataclasses import replace

from easel.records.decision import Reasons, RunnerUp

REASONS = Reasons("by time waited", mean=0.9, deviation=0.1, acquisition=0.000141, cost=3.0, best_so_far=0.8)


def test_a_runner_up_that_scores_more_is_not_called_next_best() -> None:
    told = replace(REASONS, runner_up=RunnerUp("wine", "svm", 0.000432)).numbers()
    assert told.endswith("scores 0.000141; svm of wine scores more (0.000432), but not only the score counts")


def test_a_runner_up_that_scores_less_is_next_best() -> None:
    told = replace(REASONS, runner_up=RunnerUp("wine", "svm", 0.0001)).numbers()
    assert told.endswith("scores 0.000141; next best is svm of wine with 0.0001")


def test_somebody_alone_is_told_so() -> None:
    assert REASONS.numbers().endswith("nobody else has anything to run")

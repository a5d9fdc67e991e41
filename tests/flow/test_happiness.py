"""The best score of each app over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from easel.flow.happiness import QualityStep, mean_of, rising, thinned

START = datetime(2026, 1, 1, tzinfo=UTC)


def steps(*pairs: tuple[int, float]) -> list[QualityStep]:
    return [QualityStep(START + timedelta(hours=hour), quality) for hour, quality in pairs]


def test_only_improvements_count_whatever_the_order_in_which_trials_end() -> None:
    assert rising(steps((3, 0.7), (1, 0.5), (2, 0.4), (4, 0.9))) == steps((1, 0.5), (3, 0.7), (4, 0.9))


def test_the_mean_counts_an_app_from_its_first_model_on() -> None:
    found = mean_of([steps((1, 0.4), (3, 0.8)), steps((2, 0.6))])
    assert [step.at for step in found] == [step.at for step in steps((1, 0), (2, 0), (3, 0))]
    assert [step.quality for step in found] == pytest.approx([0.4, 0.5, 0.7])


def test_a_long_history_is_thinned_and_ends_where_it_ended() -> None:
    many = steps(*((hour, hour / 5000) for hour in range(5000)))
    kept = thinned(many, 100)
    assert len(kept) == 100
    assert kept[-1] == many[-1]
    assert thinned(many[:50], 100) == many[:50]

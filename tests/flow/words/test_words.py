"""Sentences for people: reasons, standings, durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from easel.flow.words import standing
from easel.flow.words.candidates import ARTICLES, FAMILIES, in_words
from easel.flow.words.numbers import chance, clock, duration, money
from easel.flow.words.reasons import after_whom, hope, plain
from easel.match.registry import all_families
from easel.records.decision import Reasons
from easel.records.standing import Obstacle, Standing

NOW = datetime(2026, 11, 16, 14, 30, tzinfo=UTC)


def reasons(mean: float, deviation: float, best: float, cost: float = 20.0) -> Reasons:
    return Reasons("largest expected gain per cost", mean, deviation, 1e-5, cost, best)


def test_a_reason_tells_the_chance_the_gain_and_the_time_in_words() -> None:
    found = plain(reasons(0.98, 0.012, 0.994), "convnet(augment=flip, width=0.5)", "accuracy", best=0.994)
    assert found == (
        "A small convolutional network with mirrored pictures (width 0.5) has about a 1 in 8 chance to beat the best "
        "so far (99.4 %), by 0.4 points if it does, and takes about 20 s."
    )


def test_a_first_model_has_nothing_to_beat_and_a_past_one_is_told_in_the_past() -> None:
    first = plain(reasons(0.8, 0.1, 0.0, 1.2), "svm(C=3)", "accuracy", best=None)
    assert first == (
        "A support vector machine (C 3) is tried for a first result of about 80.0 %; it takes about 1 s."
    )
    past = plain(reasons(0.5, 0.1, 0.5), "linear", "r2", best=0.5, past=True)
    assert past.startswith(
        "A linear model had about an even chance to beat the best until then (0.5), by 0.0"
    )
    assert past.endswith("and was expected to take about 20 s.")


def test_of_a_slice_the_hope_is_the_trials_and_the_time_its_own() -> None:
    hoped = reasons(0.98, 0.012, 0.994, cost=4.0)
    assert plain(hoped, "svm(C=3)", "accuracy", best=0.994, until=0.25) == (
        "A support vector machine (C 3) has about a 1 in 8 chance to beat the best so far (99.4 %), by 0.4 points if "
        "it does, when its trial is done; its next slice, up to 25 % of it, takes about 4 s."
    )
    last = plain(hoped, "svm(C=3)", "negative_mae", best=-3.25, until=1.0, past=True)
    assert last.endswith(
        "the best until then (-3.25) when its trial is done; its last slice was expected to take about 4 s."
    )
    first = plain(reasons(0.8, 0.1, 0.0, 2.0), "svm(C=3)", "accuracy", best=None, until=1 / 12)
    assert first.endswith(
        "a first result of about 80.0 % when its trial is done; its next slice, up to 8 % of it, takes about 2 s."
    )


def test_no_hope_is_placed_above_what_a_score_can_be() -> None:
    wide = hope(reasons(1.11, 0.1, 0.99))
    assert wide.gain <= 0.01
    assert hope(reasons(0.9, 0.1, 1.0)).probability == 0.0
    assert hope(reasons(0.9, 0.0, 0.8)).gain == pytest.approx(0.1)


def test_an_error_measure_names_no_gain_that_it_cannot_know() -> None:
    found = plain(reasons(0.6, 0.1, 0.5), "lightgbm(leaves=7)", "negative_mae", best=-3.25)
    assert "(-3.25)" in found
    assert "if it does" not in found


def test_every_family_of_models_has_words() -> None:
    assert set(all_families()) - set(FAMILIES) - set(ARTICLES) == set()


def test_another_projects_app_is_not_named() -> None:
    assert "another project" in after_whom(None)
    assert after_whom("wine") == "It runs after wine, whose next trial promises more for its time."


@pytest.mark.parametrize("kind", [one for one in Standing if one not in (Standing.RUNNING,)])
def test_every_standing_has_a_sentence_without_an_empty_end(kind: Standing) -> None:
    facts = {"until": 0.9, "best": 0.95, "spent": 5.0, "budget": 5.0, "limit": 5.0, "expected": 0.0002}
    told = standing.sentence("app", "digits", Obstacle(kind, NOW, "ana", facts), NOW, NOW)
    assert told
    assert "None" not in told
    assert not told.endswith((" ", ";", ":"))


def test_standings_say_since_when_by_whom_and_what_would_change_it() -> None:
    paused = Obstacle(Standing.QUEUE_PAUSED, NOW - timedelta(minutes=28), "ana")
    told = standing.sentence("app", "digits", paused, None, NOW)
    assert told.startswith("waits: its owner's queue is paused (by ana, 14:02 UTC)")
    spent = Obstacle(Standing.PROJECT_BUDGET_SPENT, facts={"project": "astro", "limit": 5.0, "spent": 5.0})
    assert "the budget of astro is spent: $0.00 of $5.00 left" in standing.sentence(
        "app", "x", spent, None, NOW
    )
    little = Obstacle(Standing.LITTLE_TO_GAIN, facts={"expected": 0.0002})
    assert "nothing more to gain is expected: 0.02 % for the next hour" in standing.sentence(
        "app", "x", little, None, NOW
    )


def test_numbers_are_written_as_people_say_them() -> None:
    assert [duration(s) for s in (0.2, 20, 240, 7200, 300_000)] == ["1 s", "20 s", "4 min", "2 h", "3 days"]
    assert chance(0.126) == "has about a 1 in 8 chance"
    assert chance(0.0001) == "has hardly any chance"
    assert clock(NOW - timedelta(days=1), NOW) == "Sun 15 Nov, 14:30 UTC"
    assert money(5.0, "CHF") == "5.00 CHF"
    assert in_words("unheard_of") == "an unheard of"

"""The pool's use over time, from spans in which projects held devices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from easel.flow.pool_history import SPANS, held_by
from easel.store.pool_use import HeldSpan

SINCE = datetime(2026, 11, 1, tzinfo=UTC)
STEP = timedelta(minutes=1)
NOW = SINCE + SPANS * STEP
NAMES = {"astro": "astro", "bio": "others", "geo": "others"}


def span(project: str, start: float, end: float | None, vcpu: float = 2.0, gpus: float = 0.0) -> HeldSpan:
    ended = None if end is None else SINCE + end * STEP
    return HeldSpan(project, SINCE + start * STEP, ended, vcpu, gpus)


def test_each_span_has_the_mean_of_what_was_held_in_it() -> None:
    (held,) = held_by([span("astro", 0.5, 2.25)], NAMES, SINCE, STEP, NOW)
    assert held.project == "astro"
    assert held.vcpu[:4] == pytest.approx((1.0, 2.0, 0.5, 0.0))
    assert sum(held.vcpu) == pytest.approx(2 * 1.75)


def test_what_began_before_or_still_runs_is_cut_at_the_ends() -> None:
    (held,) = held_by([span("astro", -5, None, gpus=1.0)], NAMES, SINCE, STEP, NOW)
    assert held.vcpu == pytest.approx([2.0] * SPANS)
    assert held.gpus == pytest.approx([1.0] * SPANS)


def test_other_projects_are_summed_and_who_used_most_comes_first() -> None:
    found = held_by([span("astro", 1, 2), span("bio", 1, 2), span("geo", 1, 3)], NAMES, SINCE, STEP, NOW)
    assert [one.project for one in found] == ["others", "astro"]
    assert found[0].vcpu[:4] == pytest.approx((0.0, 4.0, 2.0, 0.0))


def test_an_attempt_that_held_nothing_yet_counts_as_nothing() -> None:
    (held,) = held_by([span("astro", SPANS, None)], NAMES, SINCE, STEP, NOW)
    assert sum(held.vcpu) == 0

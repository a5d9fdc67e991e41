"""Thinning of series."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from easel.flow.jobs.look import thin
from easel.store.job_series import Mark


def points(values: list[float | None]) -> list[Mark]:
    return [Mark(step, value) for step, value in enumerate(values)]


@given(st.lists(st.none() | st.floats(-10, 10), min_size=1, max_size=300), st.integers(4, 60))
def test_a_thinned_series_is_short_in_order_and_keeps_both_ends(
    values: list[float | None], limit: int
) -> None:
    whole = points(values)
    kept = thin(whole, limit)
    assert len(kept) <= max(limit, 1) or len(whole) <= limit
    assert [p.step for p in kept] == sorted({p.step for p in kept})
    assert (kept[0], kept[-1]) == (whole[0], whole[-1])


def test_a_spike_and_a_nan_do_not_disappear() -> None:
    values: list[float | None] = [0.0] * 10_000
    values[3333] = 99.0
    values[6666] = None
    kept = thin(points(values), 100)
    assert 99.0 in [p.value for p in kept]
    assert Mark(6666, None) in kept

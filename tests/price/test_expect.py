"""How long runs to come will take, from a guess and from what their family took."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.price.expect import NOISE_SD, Took, WorkKind, expected_seconds

FOREST, NETWORK = WorkKind("forest(depth=8)", "forest", 10.0), WorkKind("network", "network", 100.0)
SIBLING = WorkKind("forest(depth=16)", "forest", 20.0)


def test_without_any_run_the_medians_are_the_guesses() -> None:
    assert expected_seconds([FOREST, NETWORK]).seconds == pytest.approx([10.0, 100.0])
    assert expected_seconds([]).seconds.shape == (0,)


def test_a_slow_run_slows_its_kind_most_its_family_less_and_the_rest_a_little() -> None:
    told = expected_seconds([FOREST, SIBLING, NETWORK], [Took(FOREST, 40.0)])
    own, sibling, other = told.seconds / [10.0, 20.0, 100.0]
    assert 4.0 > own > sibling > other > 1.0


def test_many_runs_settle_a_kind() -> None:
    told = expected_seconds([FOREST], [Took(FOREST, 40.0)] * 30)
    assert told.seconds[0] == pytest.approx(40.0, rel=0.02)
    low, high = told.interval(0.9)
    assert np.log(high[0] / low[0]) == pytest.approx(2 * 1.645 * NOISE_SD, rel=0.1)


def test_a_guess_that_grew_with_the_data_keeps_what_was_learnt() -> None:
    later = WorkKind(FOREST.name, FOREST.family, 1000.0)
    assert expected_seconds([later], [Took(FOREST, 20.0)] * 30).seconds[0] == pytest.approx(2000.0, rel=0.02)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([FOREST, SIBLING, NETWORK]), st.floats(allow_nan=True, allow_infinity=True)
        ),
        max_size=12,
    )
)
def test_whatever_was_measured_the_answer_is_finite_and_positive(taken: list[tuple[WorkKind, float]]) -> None:
    told = expected_seconds([FOREST, NETWORK, WorkKind("new", "new", 0.0)], [Took(*one) for one in taken])
    assert np.isfinite(told.centre).all()
    assert (told.spread > 0).all()

"""Counts in words."""

from __future__ import annotations

import pytest

from easel.declare.counted import counted


@pytest.mark.parametrize(
    ("number", "what", "told"),
    [
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (0, "day", "0 days"),
        (3, "class", "3 classes"),
        (1200, "new example", "1,200 new examples"),
        (0.5, "day", "0.5 days"),
        (1.0, "day", "1 day"),
    ],
)
def test_only_one_is_told_in_the_singular(number: float, what: str, told: str) -> None:
    assert counted(number, what) == told

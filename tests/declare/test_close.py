"""Mistyped names are answered with those that were probably meant."""

from __future__ import annotations

import pytest

from easel.declare.close import did_you_mean


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("leavs", ": did you mean leaves?"),
        ("SHOP", ": did you mean shop or shop-2?"),
        ("nothing", ""),
        ("", ""),
        ("leaves" * 1000, ""),
    ],
)
def test_a_mistyped_name_is_answered_with_those_like_it(given: str, told: str) -> None:
    assert did_you_mean(given, ["leaves", "shop", "shop-2", "stars"]) == told

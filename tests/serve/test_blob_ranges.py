"""`Range` of a signed address: inside what was signed, in plain digits."""

from __future__ import annotations

import pytest

from easel.errors import InvalidInput
from easel.serve.routes.blobs import _inside


@pytest.mark.parametrize(
    "span",
    [
        "bytes=\u00b2-3",
        "bytes=1-\u00b2",
        "bytes=\u0661-3",
        "bytes=-3",
        "lines=1-3",
        "bytes=3-1",
        "bytes=0-99",
    ],
)
def test_odd_ranges_are_refused_in_words(span: str) -> None:
    with pytest.raises(InvalidInput, match=r"range|covers"):
        _inside(span, 0, 10)


def test_a_range_is_read_and_an_open_one_goes_to_the_end() -> None:
    assert _inside("bytes=2-3", 0, 10) == (2, 4)
    assert _inside("bytes=2-", 0, 10) == (2, 10)
    assert _inside(None, 1, 10) == (1, 10)

"""What runs, drawn for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from easel.cli.top import bar, counts_told, lasting


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0.0, "----------   0 %"),
        (0.4, "####------  40 %"),
        (1.5, "########## 150 %"),
        (1.0, "########## 100 %"),
    ],
)
def test_a_bar_shows_how_much_is_done(share: float, drawn: str) -> None:
    assert bar(share, 10) == drawn


def test_a_job_that_has_not_begun_lasts_nothing() -> None:
    assert lasting(None) is None
    begun = datetime.now(UTC) - timedelta(hours=1, minutes=2, seconds=3)
    assert lasting(begun) in ("1:02:03", "1:02:04")


def test_what_is_not_over_is_counted_first() -> None:
    assert counts_told({"failed": 3, "queued": 1, "running": 2}) == "2 running, 1 queued, 3 failed"
    assert counts_told({"failed": 0}) == "no jobs"

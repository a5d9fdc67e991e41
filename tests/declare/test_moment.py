from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from easel.declare.moment import parse_deadline, parse_duration
from easel.errors import InvalidInput

WEDNESDAY = datetime(2026, 3, 11, 15, 0, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("90", 90),
        ("2.5h", 9000),
        ("1d", 86_400),
        ("1h 5s", 3605),
        (" 45S ", 45),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "10 minutes or so", "-5m", "0", "5x", "1h-30m", "nan"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("fri 18:00", "2026-03-13T18:00:00+01:00"),
        ("Friday 18:00", "2026-03-13T18:00:00+01:00"),
        ("wed 18:00", "2026-03-11T18:00:00+01:00"),
        ("wed 12:00", "2026-03-18T12:00:00+01:00"),
        ("18:00", "2026-03-11T18:00:00+01:00"),
        ("9am", "2026-03-12T09:00:00+01:00"),
        ("2026-03-13 18:00", "2026-03-13T18:00:00+01:00"),
        ("2026-03-13T18:00:00Z", "2026-03-13T18:00:00+00:00"),
    ],
)
def test_a_deadline_is_the_next_moment_that_fits(text: str, moment: str) -> None:
    assert parse_deadline(text, WEDNESDAY) == datetime.fromisoformat(moment)


@pytest.mark.parametrize("text", ["yesterdayish", "2020-01-01 10:00", "25:99", ""])
def test_nonsense_and_the_past_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_deadline(text, WEDNESDAY)


def test_the_present_must_carry_its_zone() -> None:
    with pytest.raises(InvalidInput, match="zone"):
        parse_deadline("fri 18:00", WEDNESDAY.replace(tzinfo=None))
    assert parse_deadline("fri 18:00", WEDNESDAY.astimezone(UTC)).tzinfo is UTC

"""Durations and deadlines as people write them: `10m`, `1h30m`, `90` (seconds); `fri 18:00`, `2026-03-13 18:00`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from dateutil import parser as dates

from easel.errors import InvalidInput

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])")
_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d|\d\s*[./]\s*\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE)


def parse_duration(text: str) -> float:
    """Seconds. Units are d, h, m and s; a bare number is seconds."""
    plain = text.strip().lower()
    pieces = _PIECE.findall(plain)
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        seconds = float(plain)
    elif pieces and not _PIECE.sub("", plain).strip():
        seconds = sum(float(number) * _UNITS[unit] for number, unit in pieces)
    else:
        raise InvalidInput(f"{text!r} is no duration: write it as 90, 10m or 1h30m")
    if seconds <= 0:
        raise InvalidInput("a duration of zero leaves no time: give a positive one")
    return seconds


def parse_deadline(text: str, now: datetime) -> datetime:
    """The next moment that `text` can mean, in the zone of `now`: a weekday or a time of day without a date is the
    first one still to come; a full date must lie in the future.
    """
    if now.tzinfo is None:
        raise InvalidInput("a deadline needs to know the zone of the present")
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        found = dates.parse(text, default=midnight)
    except (ValueError, OverflowError) as error:
        advice = 'write it as "fri 18:00", "18:00" or "2026-03-13 18:00"'
        raise InvalidInput(f"{text!r} is no deadline: {advice}") from error
    if found <= now and not _DAY.search(text):
        found += timedelta(days=7 if _WEEKDAY.search(text) else 1)
    if found <= now:
        raise InvalidInput(f"the deadline {found:%Y-%m-%d %H:%M} has passed")
    return found

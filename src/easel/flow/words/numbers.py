"""Durations, shares, chances, money and times of day in words."""

from __future__ import annotations

from datetime import UTC, datetime


def duration(seconds: float) -> str:
    """About how long: `20 s`, `4 min`, `2 h`, `3 days`."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 48 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400)} days"


def chance(probability: float) -> str:
    """`about a 1 in 8 chance`, `an even chance`, `hardly any chance`."""
    if probability >= 0.95:
        return "is nearly certain"
    if probability >= 0.6:
        return f"has a good chance ({probability:.0%})"
    if probability >= 0.4:
        return "has about an even chance"
    if probability >= 0.01:
        return f"has about a 1 in {round(1 / probability)} chance"
    return "has hardly any chance"


def clock(moment: datetime, now: datetime) -> str:
    """A time of day, with the day where that is another one."""
    at, today = moment.astimezone(UTC), now.astimezone(UTC)
    if at.date() == today.date():
        return f"{at:%H:%M} UTC"
    return f"{at:%a %d %b, %H:%M} UTC" if at.year == today.year else f"{at:%d %b %Y, %H:%M} UTC"


def money(amount: float, currency: str = "USD") -> str:
    sign = {"USD": "$", "EUR": "€", "GBP": "£"}.get(currency)
    return f"{sign}{amount:,.2f}" if sign else f"{amount:,.2f} {currency}"

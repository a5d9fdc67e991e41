"""Counts in words."""

from __future__ import annotations


def counted(number: float, what: str) -> str:
    """Returns a number and what is counted, in the plural where it is not one: `1 entry`, `2 entries`, `0.5 days`."""
    if number != 1:
        ending = "es" if what.endswith(("s", "x", "ch", "sh")) else "s"
        what = f"{what[:-1]}ies" if what.endswith("y") and what[-2] not in "aeiou" else f"{what}{ending}"
    return f"{number:,} {what}" if isinstance(number, int) else f"{number:g} {what}"

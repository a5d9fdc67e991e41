"""Values as people read them: no braces, no quotes, no `True`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Ago:
    """A moment that people read as "3 min ago" and programs as it is."""

    moment: datetime | None


@dataclass(frozen=True, slots=True)
class Lasting:
    """Seconds that people read in minutes, hours or days, and programs as a number."""

    seconds: float | None


class Size(int):
    """Bytes that people read in kB, MB or GB, and programs as a number."""


_JOB = re.compile(r"job_[0-9a-hjkmnp-tv-z]{26}")
_TAIL = 6


def plain(value: Any) -> str:
    """Returns one line for a value of any depth: `a=1, b=2` for fields, `x, y` for lists, yes and no for truth."""
    if value is None or value in ("", [], {}, ()):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Ago):
        return ago(value.moment)
    if isinstance(value, Lasting):
        return lasting(value.seconds) or NOTHING
    if isinstance(value, Size):
        return size(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:.6g}"
    if _is_model(value):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return ", ".join(
            f"{key}={_inside(each)}" for key, each in value.items() if each not in (None, [], {}, "")
        )
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_inside(each) for each in value)
    return str(value)


def ago(moment: datetime | None) -> str:
    """Returns how long ago that was, in the largest unit that fits."""
    if moment is None:
        return "never"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for length, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {name} ago"
    return "just now"


def lasting(seconds: float | None) -> str | None:
    """Returns a duration in the unit that suits it: `12.3 s`, `14 min`, `2.5 h`, `3.1 d`."""
    if seconds is None:
        return None
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} d"


def short_id(text: str) -> str:
    """Returns the end of a job's id, which names the job everywhere where no other has it; any other text as it is."""
    return text[-_TAIL:] if _JOB.fullmatch(text) else text


def _is_model(value: Any) -> bool:
    """Whether it is a pydantic model; asked of its class, so that pydantic need not be imported."""
    return hasattr(type(value), "model_fields")


def _has_fields(value: Any) -> bool:
    return isinstance(value, Mapping) or _is_model(value)


def _inside(value: Any) -> str:
    nested = _has_fields(value) or (
        isinstance(value, list | tuple) and any(_has_fields(each) for each in value)
    )
    text = plain(value)
    return f"({text})" if nested and text != NOTHING else text


def size(number: float) -> str:
    """Returns bytes in the unit in which people say them, as the pages and quotas do: `3.2 GB` are 3.2 · 10⁹."""
    if number < 1000:
        return f"{number:.0f} B"
    unit = "kB"
    number /= 1000
    for larger in ("MB", "GB", "TB"):
        if number < 999.5:
            break
        unit = larger
        number /= 1000
    return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"


def money(amount: float, currency: str) -> str:
    """Returns a sum with its currency; small ones with two digits, to a millionth, never as a power of ten."""
    if 0 < amount < 5e-7:
        return f"under 0.000001 {currency}"
    if 0 < amount < 0.01:
        return f"{amount:.{min(6, math.ceil(-math.log10(amount)) + 1)}f} {currency}"
    return f"{amount:.2f} {currency}"

"""Cells as people write them: numbers with separators, currency and units, dates, and ways to say "missing"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "?", "-", "--", ".", "unknown", "missing"}
    | {"not available", "not known", "#n/a", "(blank)", "<na>"}
)
"""How people write that a value is missing (compared in lower case, without blanks)."""
MARKS = MISSING - {"none", "nil", "unknown", "missing", "not known", "-", "--"}
"""Those that programs write, or that name no class: `none` and `unknown` may be answers of their own."""
_CURRENCY = "$€£¥₹"
_NUMBER = re.compile(
    rf"(?P<before>[{_CURRENCY}]|CHF|EUR|USD|GBP)?\s*"
    r"(?P<sign>[+\-−])?\s*"
    rf"(?:[{_CURRENCY}]\s*)?"
    r"(?P<body>[0-9][0-9.,'’  \u202f]*(?:[eE][+-]?[0-9]+)?|[.,][0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"\s*(?P<unit>[%°µ²³/\w$€£¥₹]{0,12})\Z"
)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  dates of tables have no zone
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p")
_DAYS: tuple[str, ...] = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y")
_DAYS += ("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y")
FORMATS = tuple(f"{day}{time}" for day in _DAYS for time in _TIMES)
_LOOKED_AT = 5_000


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


@dataclass(frozen=True)
class NumberStyle:
    """How a column writes its numbers: the decimal mark, and the unit behind every one of them."""

    decimal: str = "."
    unit: str = ""


def read_number(cell: str, style: NumberStyle | None = None) -> float | None:
    """The number that a cell spells, or None. Without a style a lone comma before three digits groups thousands, and
    no unit but a percent sign or a currency is admitted: `5 kg` and `300 g` must not be taken for one scale.
    """
    text = cell.strip()
    try:
        plain = float(text) if (style is None or style.decimal == ".") and "_" not in text else math.nan
        if math.isfinite(plain):
            return plain
    except ValueError:
        pass
    found = _NUMBER.match(text)
    if found is None or (found["unit"] not in _units(style)):
        return None
    body = re.sub(r"['’\s]", "", found["body"])
    digits, _, exponent = body.lower().partition("e")
    decimal = style.decimal if style is not None else _decimal_of(digits)
    group = "." if decimal == "," else ","
    whole, _, fraction = digits.partition(decimal)
    if group in fraction or decimal in fraction or (group in whole and not _grouped(whole, group)):
        return None
    spelled = f"{whole.replace(group, '') or '0'}.{fraction or '0'}"
    value = float(f"{spelled}e{exponent}" if exponent else spelled)
    if not math.isfinite(value):
        return None
    return -value if found["sign"] in ("-", "−") else value


def _units(style: NumberStyle | None) -> set[str]:
    return {"", "%", *_CURRENCY, "CHF", "EUR", "USD", "GBP"} | (set() if style is None else {style.unit})


def _decimal_of(digits: str) -> str:
    """Returns the decimal mark of one number alone: the later of two marks, or a comma that cannot group thousands."""
    if "," in digits and "." in digits:
        return "," if digits.rfind(",") > digits.rfind(".") else "."
    return "," if "," in digits and not _grouped(digits, ",") else "."


def _grouped(digits: str, mark: str) -> bool:
    first, *rest = digits.split(mark)
    return 1 <= len(first) <= 3 and not first.startswith("0") and all(len(part) == 3 for part in rest)


def style_of(cells: Sequence[str]) -> NumberStyle | None:
    """How these cells write their numbers; None where most of them are none, or their units differ."""
    present = [cell.strip() for cell in cells[:_LOOKED_AT] if not is_missing(cell)]
    found = [match for match in map(_NUMBER.match, present) if match is not None]
    if not present or len(found) < 0.8 * len(present):
        return None
    units = Counter(match["unit"] for match in found)
    named = [unit for unit in units if unit]
    if len(named) > 1 or (named and len(units) > 1):
        return None
    decimal = "," if decimal_proven(present) == "," else "."
    return NumberStyle(decimal, named[0] if named else "")


def decimal_proven(cells: Iterable[str]) -> str:
    """Returns the decimal mark that some of these numbers can only mean; nothing where none does, or both occur."""
    matches = (_NUMBER.match(cell.strip()) for cell in islice(cells, _LOOKED_AT))
    bodies = [re.sub(r"['’\s]", "", m["body"]).lower().partition("e")[0] for m in matches if m is not None]
    commas = any("," in body and _decimal_of(body) == "," for body in bodies)
    points = any("." in body and not _grouped(body, ".") for body in bodies)
    return "" if commas == points else "," if commas else "."


def read_moment(cell: str, form: str | None = None, order: str = "") -> float | None:
    """Seconds since 1970 of a written date or time of day, or None. `form`: the one form of its column, `order` that of
    day and month as `day_order` tells it.
    """
    text = " ".join(cell.strip().split())
    if not 5 <= len(text) <= 40 or not any(c.isdigit() for c in text):
        return None
    if form is not None:
        return _by_form(text, form)
    if text[:4].isdigit() and len(text) >= 8:
        try:
            return seconds_of(datetime.fromisoformat(text))
        except ValueError:
            pass
    likely = [form for form in FORMATS if not order or day_order(form) in ("", order)]
    return next((moment for form in likely if (moment := _by_form(text, form)) is not None), None)


def seconds_of(moment: datetime) -> float:
    """Returns seconds since 1970, by the clock where no zone is given, else in universal time."""
    plain = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return (plain - _EPOCH).total_seconds()


def _by_form(text: str, form: str) -> float | None:
    try:
        return seconds_of(datetime.strptime(text, form))  # noqa: DTZ007
    except ValueError:
        return None


def moment_form(cells: Iterable[str]) -> str | None:
    """The one form that all dates of a column have, `iso` among them; None where they are no dates."""
    return next(iter(moment_forms(cells)), None)


def moment_forms(cells: Iterable[str]) -> list[str]:
    """All forms that the dates of a column may have, the likeliest first."""
    present = [" ".join(cell.split()) for cell in cells if not is_missing(cell)][:_LOOKED_AT]
    if not present or not all(any(c in "-/.: " for c in cell) for cell in present):
        return []
    if all(cell[:4].isdigit() and len(cell) >= 8 and read_moment(cell) is not None for cell in present):
        return ["iso"]
    return [form for form in FORMATS if all(_by_form(cell, form) is not None for cell in present)]


def day_order(form: str) -> str:
    """Returns `dmy` or `mdy` of a form that could be taken for the other; nothing of one that could not."""
    return {"%d/%m": "dmy", "%m/%d": "mdy"}.get(form[:5], "")

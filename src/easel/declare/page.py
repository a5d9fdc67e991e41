"""How any collection is paged, sorted and filtered: the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from easel.errors import InvalidInput

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "prefix", "contains", "in"]


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition, written `field:operator:value`: `name:prefix:astro`, `state:in:running,queued`."""

    field: str
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """`sort` is a field, `-field` for descending, or empty for the collection's own order."""

    limit: int = 50
    cursor: str | None = None
    sort: str = ""
    filters: tuple[Filter, ...] = ()


def parse_filter(text: str) -> Filter:
    parts = text.split(":", 2)
    if len(parts) != 3 or parts[1] not in get_args(Operator):
        operators = ", ".join(get_args(Operator))
        raise InvalidInput(
            f"filter {text[:80]!r} is not of the form field:operator:value; operators are {operators}"
        )
    return Filter(parts[0], cast(Operator, parts[1]), parts[2])

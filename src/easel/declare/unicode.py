"""Text that can be stored and sent: no half of a surrogate pair, which no encoding can hold."""

from __future__ import annotations

import re
from typing import Any

from easel.errors import InvalidInput

_HALF = re.compile("[\ud800-\udfff]")


def check_unicode(value: Any, what: str) -> None:
    """Refuses values in which some text, at whatever depth, is not valid Unicode."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if _HALF.search(each):
                raise InvalidInput(f"{what} holds text that is not valid Unicode (half a surrogate pair)")
        elif isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set):
            waiting += each


def storable(text: str) -> str:
    """The text with half surrogate pairs and NUL, which no database takes, as the character for what is unreadable."""
    return (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )

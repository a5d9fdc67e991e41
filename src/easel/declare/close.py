"""Names that were probably meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3
LEAST_ALIKE = 0.6


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Returns `: did you mean shop?`, to stand after a refusal; nothing where no known name is like the given one."""
    by_letters = {name.lower(): name for name in known}
    found = get_close_matches(given.lower()[:100], by_letters, n=MOST, cutoff=LEAST_ALIKE)
    names = [by_letters[one] for one in found]
    if not names:
        return ""
    return f": did you mean {' or '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)}?"

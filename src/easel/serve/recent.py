"""What was just read from the database and may be believed for a moment more.

A value holds until anybody changes anything through this server, and no longer than a second: that is how long another
server of the same installation may go on believing what was changed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
HOLDS_S = 1.0
MOST = 10_000


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    value: T
    changes: int
    until: float


class Recent(Generic[T]):
    """Values by key. `changes` counts what was changed here, `clock` is in seconds."""

    def __init__(self, changes: Callable[[], int], clock: Callable[[], float]) -> None:
        self._changes, self._clock = changes, clock
        self._kept: dict[Hashable, _Kept[T]] = {}

    def get(self, key: Hashable) -> T | None:
        found = self._kept.get(key)
        if found is None or found.changes != self._changes() or found.until < self._clock():
            return None
        return found.value

    def mark(self) -> int:
        """Taken before the database is asked: what is changed meanwhile makes the value worthless."""
        return self._changes()

    def keep(self, key: Hashable, value: T, mark: int) -> None:
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[key] = _Kept(value, mark, self._clock() + HOLDS_S)

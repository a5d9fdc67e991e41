"""Time comes in as an argument, so that every loop can be tested without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, in UTC. It may jump."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

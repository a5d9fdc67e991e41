"""Whether an interactive session is used: by somebody who works in it, by its processors, by its GPUs. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

WARN_S = 300.0
"""How long before the end a session is warned; at most half of the limit."""
LOOK_S = 15.0
BUSY_VCPU = 0.1
BUSY_GPU = 0.05


@dataclass(frozen=True, slots=True)
class Word:
    """What is to be said about a session; `over` when it ends now."""

    text: str
    over: bool


@dataclass(slots=True)
class IdleWatch:
    """Looks every `LOOK_S` seconds, or ten times within a shorter limit."""

    limit_s: float
    started: float
    _active: float = field(init=False)
    _due: float = field(init=False)
    _at: float = field(init=False)
    _cpu: float = 0.0
    _warned: bool = False
    _was_busy: bool = False

    def __post_init__(self) -> None:
        self._active = self._at = self.started
        self._due = self.started + self._pause

    @property
    def _pause(self) -> float:
        return min(LOOK_S, self.limit_s / 10)

    def look(self, now: float, touched: float, cpu_seconds: float, gpu: Callable[[], float]) -> Word | None:
        """What to say now, if anything. `touched` is when somebody last did something; `gpu` is asked only when due."""
        if now < self._due:
            return None
        used = (cpu_seconds - self._cpu) / max(1e-6, now - self._at)
        self._at, self._cpu, self._due = now, cpu_seconds, now + self._pause
        busy = used > BUSY_VCPU or gpu() > BUSY_GPU
        # What was busy at the last look may have been so until now: nobody is ended early.
        self._active = max(self._active, touched, now if busy or self._was_busy else 0.0)
        self._was_busy = busy
        idle = now - self._active
        warn = min(WARN_S, self.limit_s / 2)
        if idle >= self.limit_s:
            return Word(f"idle for {_minutes(idle)}: the session is saved and ends", True)
        if idle < self.limit_s - warn:
            self._warned = False
        elif not self._warned:
            self._warned = True
            left = _minutes(self.limit_s - idle)
            return Word(
                f"idle for {_minutes(idle)}: the session is saved and ends in {left}, unless it is used",
                False,
            )
        return None


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"

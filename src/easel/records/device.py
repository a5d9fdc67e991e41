"""Places where jobs run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from easel.declare.resources import Room
from easel.ids import ProjectId

LABEL = "label "


@dataclass(frozen=True, slots=True)
class Drain:
    """It gets no more work since then; what still runs at `by` is stopped and tried again elsewhere (None: never)."""

    since: datetime
    by: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """From `start` to `end` only jobs of the project begin on the device; `project` is its name."""

    id: str
    device: str
    project_id: str
    project: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Device:
    """`notes` tell what an admin should know: whether there is a sandbox, how limits are enforced. `kept_for` is the
    project for which it is reserved at this moment."""

    name: str
    executor: str
    capacity: Room
    notes: Mapping[str, str]
    connected: bool
    seen_at: datetime
    drain: Drain | None = None
    kept_for: ProjectId | None = None

    @property
    def open(self) -> bool:
        """Whether it may be given more work."""
        return self.connected and self.drain is None

    @property
    def labels(self) -> dict[str, str]:
        """What it says about itself, as jobs ask for it."""
        return {k.removeprefix(LABEL): v for k, v in self.notes.items() if k.startswith(LABEL)}

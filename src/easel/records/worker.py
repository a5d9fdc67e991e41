"""Work that is pulled: what waits, who pulls, and what an engine was asked to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from easel.declare.resources import Resources, Room


@dataclass(frozen=True, slots=True)
class WorkerToken:
    """A worker's credential without its secret. It opens the routes of workers and nothing else."""

    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptOffer:
    """One attempt that waits for a worker. `gang` names the attempt of which it is member `rank` of `size`."""

    key: str
    gang: str
    rank: int
    size: int
    resources: Resources
    wants: Mapping[str, str]
    waited_s: float
    time_limit_s: float | None = None
    short: bool = False
    first: bool = False


@dataclass(frozen=True, slots=True)
class Puller:
    """A worker that asks for work: what it has left, and what it is."""

    name: str
    room: Room
    labels: Mapping[str, str] = field(default_factory=dict)
    remaining_s: float | None = None
    ahead: int = 0

    @property
    def open(self) -> bool:
        """Whether anything at all could be given to it."""
        return self.room.vcpu >= 0.5 or self.ahead > 0

    @property
    def most(self) -> int:
        """Returns how many could be given to it at most."""
        return int(self.room.vcpu / 0.5) + self.ahead

    @property
    def price(self) -> float:
        """What an hour of it costs, by its own label; unknown counts as nothing."""
        try:
            return float(self.labels.get("price_per_hour", 0.0))
        except ValueError:
            return 0.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Workers that an engine was asked to start: `count` of them, side by side, each of this size."""

    name: str
    resources: Resources
    count: int = 1
    time_s: float | None = None
    handle: str | None = None

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its workers."""
        return (self.name, *(f"{self.name}-{rank}" for rank in range(1, self.count)))

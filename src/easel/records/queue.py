"""Queues of jobs: one for each (project, user)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from easel.ids import JobId, ProjectId, UserId

Owner = tuple[ProjectId, UserId]


@dataclass(frozen=True, slots=True)
class Line:
    """One queue: its first jobs in order, how many of its jobs are active, and how many may be.

    `served` is the turn in which it was last served: smaller waits longer. `usage` is what its owner has used, in
    core-seconds that fade; `charge` is what its next job is expected to add.
    """

    owner: Owner
    waiting: Sequence[JobId]
    active: int
    limit: int
    served: int = 0
    paused: bool = False
    usage: float = 0.0
    weight: float = 1.0
    project_weight: float = 1.0
    priority: int = 0
    charge: float = 60.0

    @property
    def room(self) -> int:
        return 0 if self.paused else max(0, self.limit - self.active)


@dataclass(frozen=True, slots=True)
class QueueState:
    """One user's queue as people see it."""

    user_id: UserId
    user: str
    queued: int
    active: int
    max_active: int
    paused: bool

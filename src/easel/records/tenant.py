"""Tenants of the pool as facts: what their owners asked for, and what every trial came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from easel.ids import AppId, ProjectId, UserId


@dataclass(frozen=True, slots=True)
class Terms:
    """What people said about one app or study.

    `weight` is how much its gain counts against others'. After `deadline` nothing of it starts. `budget_micros` is
    the most that its trials may be billed. At quality `until` (in its own metric) it has enough. `asked`: somebody
    wants it to go on although little is expected of it, until it was served once more. `served_at` is the turn at
    which it joined the pool or was last served; None before it joined.
    """

    weight: float = 1.0
    deadline: datetime | None = None
    budget_micros: int | None = None
    until: float | None = None
    paused_at: datetime | None = None
    paused_by: UserId | None = None
    asked: bool = False
    served_at: int | None = None


@dataclass(frozen=True, slots=True)
class TermLimits:
    """The most that members of a project may ask for; None: no limit."""

    max_weight: float | None = None
    max_budget_micros: int | None = None


@dataclass(frozen=True, slots=True)
class PoolTurn:
    """How many trials were ever started, and up to which past trial beliefs are learned."""

    turn: int = 0
    as_of: int = 0


@dataclass(frozen=True, slots=True)
class PastTrial:
    """What one trial of an app came to: `quality` is None where it failed. It outlives its app.

    `share` says how far a slice brought the trial, `seconds` are the slice's own on the reference device.
    """

    seq: int
    app_id: AppId
    metric: str
    candidate: str
    family: str
    promise: float
    guess_s: float
    quality: float | None
    seconds: float
    peak_mb: float | None
    examples: int
    share: float = 1.0
    kind: str = ""
    """The kind of GPU on which it ran, and there it took `kind_s`; empty on a CPU."""
    kind_s: float | None = None
    halved: int = 0
    """How often it had to do with less of the GPU's memory: smaller batches, networks in turn, examples on the host."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Whose a tenant is: in this project and in this person's name its trials run."""

    project_id: ProjectId
    user_id: UserId

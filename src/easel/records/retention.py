"""What may be given up when it is old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from easel.ids import ProjectId, UserId


class Leaving(StrEnum):
    """Kinds of things that can be given up."""

    LOGS = "logs"
    EVENTS = "events"
    OUTPUTS = "outputs"


@dataclass(frozen=True, slots=True)
class Retention:
    """Of what ended longer ago than `older_than`, and of jobs with `tag` alone where there is one."""

    what: Leaving
    older_than: timedelta
    tag: str = ""
    """Empty, `key`, or `key=value`."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    id: str
    project_id: ProjectId
    rule: Retention
    created_by: UserId
    created_at: datetime
    applied_at: datetime | None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What went, or would go: `count` jobs' logs, events, or output sets."""

    count: int
    bytes: int
    examples: tuple[str, ...]
    kept: int = 0
    """Output sets that stay because they could not be made again."""

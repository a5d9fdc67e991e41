"""Backups: the plan by which they are made, and those that were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class BackupPlan:
    target: str
    """A folder of the machine where the controller runs, or `s3://bucket/prefix`."""
    every: timedelta
    keep: int
    asked: bool
    """Whether somebody asked for one now."""
    since: datetime


@dataclass(frozen=True, slots=True)
class BackupRun:
    id: int
    target: str
    started_at: datetime
    ended_at: datetime | None
    name: str | None
    rows: int | None
    blobs: int | None
    damaged: int | None
    error: str | None

    @property
    def succeeded(self) -> bool:
        return self.ended_at is not None and self.error is None

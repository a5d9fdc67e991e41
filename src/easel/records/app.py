"""Apps and their examples as facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.ids import AppId, JobId, ProjectId, UserId


@dataclass(frozen=True, slots=True)
class App:
    """`examples_set` names the file-set version that holds all examples ever fed."""

    id: AppId
    project_id: ProjectId
    user_id: UserId
    name: str
    program: str
    metric: str | None
    created_at: datetime
    examples_set: str | None
    summary: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class FedExample:
    """One example ever fed: `fold` for validation, fixed for good; `on` says whether it trains."""

    digest: str
    stratum: str
    fold: int
    on: bool
    fed_at: datetime


@dataclass(frozen=True, slots=True)
class Fed:
    """What a feed did: how many were new, and how many were there already."""

    new: int
    known: int
    total: int


@dataclass(frozen=True, slots=True)
class AppTrial:
    """A decision that was acted on. `quality` is None while it runs and where it failed."""

    app_id: AppId
    job_id: JobId
    candidate: Mapping[str, Any]
    decision: Mapping[str, Any]
    started_at: datetime
    examples: int
    ended: bool
    quality: float | None
    seconds: float | None
    model_set: str | None

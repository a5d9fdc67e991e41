"""Health, cordons, drains, limits, storage: what admins read and set."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from easel.wire.model import Answer, Field, Request


class HealthCheck(Answer):
    name: Annotated[str, Field(examples=["disk"])]
    severity: Annotated[
        Literal["ok", "warning", "failed"], Field(description="`failed`: send no requests here")
    ]
    detail: str


class Health(Answer):
    version: str
    ready: bool
    checks: list[HealthCheck]


class Cordon(Request):
    reason: Annotated[str, Field(max_length=200, examples=["upgrade"])] = ""


class Cordoned(Answer):
    reason: str


class BackupPlan(Answer):
    target: Annotated[str, Field(examples=["s3://lab-backups/easel"])]
    every_s: float
    keep: Annotated[int, Field(description="So many are kept; older ones are removed")]
    asked: Annotated[bool, Field(description="One was asked for and has not begun yet")]


class BackupRun(Answer):
    started_at: datetime
    ended_at: Annotated[datetime | None, Field(description="Empty while it is being made")] = None
    target: str
    name: Annotated[
        str | None, Field(description="For `easel restore --at`", examples=["20261117-231500"])
    ] = None
    rows: int | None = None
    blobs: Annotated[int | None, Field(description="Copied because the place did not have them")] = None
    damaged: Annotated[
        int | None, Field(description="Not copied: their bytes are not what their name says")
    ] = None
    error: str | None = None


class Backups(Answer):
    plan: BackupPlan | None
    runs: Annotated[list[BackupRun], Field(description="The newest first")]


class Retention(Request):
    what: Literal["logs", "events", "outputs"]
    older_than_days: Annotated[float, Field(ge=1, le=36_500, allow_inf_nan=False)]
    tag: Annotated[
        str,
        Field(
            max_length=200, description="Only of jobs with this tag: key, or key=value", examples=["scratch"]
        ),
    ] = ""


class GiveUp(Retention):
    really: Annotated[bool, Field(description="Without this it is only told what would go")] = False


class GivenUp(Answer):
    count: Annotated[int, Field(description="Jobs whose logs, events, or output sets that go")]
    bytes: int
    kept: Annotated[int, Field(description="Output sets that stay: they could not be made again")]
    examples: list[str]


class RetentionRule(Answer):
    id: str
    what: Literal["logs", "events", "outputs"]
    older_than_days: float
    tag: str
    created_at: datetime
    applied_at: datetime | None


class RetentionRules(Answer):
    items: list[RetentionRule]


class StorageHolder(Answer):
    project: str
    user: str
    files: Annotated[int, Field(description="File versions")]
    bytes: int
    log_bytes: int


class StorageReport(Answer):
    holders: Annotated[list[StorageHolder], Field(description="The largest first")]
    objects: int
    stored_bytes: Annotated[int, Field(description="In the blob store, where equal bytes lie once")]


class SetQuota(Request):
    user: Annotated[
        str | None,
        Field(max_length=64, description="A member; without one the project itself (platform admins)"),
    ] = None
    bytes: Annotated[int | None, Field(ge=0, le=2**62, description="Of all file versions that are kept")] = (
        None
    )
    gpu_hours: Annotated[
        float | None, Field(ge=0, le=1e9, allow_inf_nan=False, description="In a calendar month, UTC")
    ] = None
    jobs: Annotated[int | None, Field(ge=0, le=10**9, description="That wait or run at one time")] = None


class Quota(Answer):
    user: Annotated[str | None, Field(description="Empty: the project itself")]
    bytes: int | None
    gpu_hours: float | None
    jobs: int | None
    used_bytes: int
    used_gpu_hours: float
    used_jobs: int


class Quotas(Answer):
    items: Annotated[list[Quota], Field(description="The project's first")]

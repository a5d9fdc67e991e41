"""A job as the database keeps it, for whoever is about to change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from easel.ids import JobId, ProjectId, UserId


class StoredJob(NamedTuple):
    """Every column of the table `jobs`, in its order; a tuple, because thousands are read in one transaction."""

    seq: int
    id: JobId
    project_id: ProjectId
    user_id: UserId
    name: str
    kind: str
    spec: Mapping[str, Any]
    state: str
    revision: int
    rank: int
    blocked: int
    attempt: int
    lost: int
    failed: int
    applied: int
    kill_requested: bool
    give_way: bool
    exit_code: int | None
    end_reason: str | None
    reason: str | None
    result: Mapping[str, Any] | None
    usage: Mapping[str, Any] | None
    progress: float | None
    log_lines: int
    log_bytes: int
    artifact_id: int
    """The job in the lake's catalogue: each has been there since it was submitted."""
    code_set: str | None
    input_set: str | None
    input_id: int | None
    output_set: str | None
    output_id: int | None
    set_tags: Sequence[Any] | None
    parent_id: JobId | None
    pipeline_id: str | None
    step: str | None
    signature: str | None
    device: str | None
    submitted_at: datetime
    not_before: datetime | None
    launched_at: datetime | None
    held_at: datetime | None
    heard_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    experiment: int
    deleted_at: datetime | None

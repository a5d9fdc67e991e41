"""Jobs as the platform knows them: states, usage, and what an attempt reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from easel.declare.job import JobSpec
from easel.declare.resources import Resources
from easel.ids import JobId, ProjectId, UserId
from easel.records.attempt import EndReason


class JobState(StrEnum):
    """The paper's figure 3, with the steps that its dashboard shows."""

    QUEUED = "queued"
    LAUNCHING = "launching"
    DOWNLOADING = "downloading"
    RUNNING = "running"
    UPLOADING = "uploading"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


ACTIVE = frozenset({JobState.LAUNCHING, JobState.DOWNLOADING, JobState.RUNNING, JobState.UPLOADING})
TERMINAL = frozenset({JobState.FINISHED, JobState.FAILED, JobState.KILLED})


GPU_BUSY, GPU_IDLE = "system/gpu", "system/gpu_idle"
"""Series of a job that holds GPUs: the share of their time in use, and GPU-seconds so far without use."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt consumed: CPU time of the whole tree, peak resident memory, time in the user's code."""

    cpu_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    wall_seconds: float = 0.0
    peak_gpu_memory_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that a job reads or left: its path, and its bytes: `size` bytes of `object` from `offset`.

    Without an object the bytes travel with the report.
    """

    path: str
    digest: str
    size: int
    object: str = ""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One job and how far it is. `attempt` counts its launches and fences off reports of earlier ones."""

    id: JobId
    project_id: ProjectId
    user_id: UserId
    spec: JobSpec
    state: JobState
    attempt: int
    kill_requested: bool
    exit_code: int | None
    end_reason: EndReason | None
    reason: str | None
    result: Mapping[str, Any] | None
    usage: Usage | None
    progress: float | None
    code_set: str | None
    input_set: str | None
    output_set: str | None
    parent_id: JobId | None
    pipeline_id: str | None
    device: str | None
    submitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What came of a job so far, without the parts of it that take long to read. `spec` is as it was stored."""

    user_id: UserId
    spec: Mapping[str, Any]
    state: JobState
    end_reason: EndReason | None = None
    result: Mapping[str, Any] | None = None
    output_set: str | None = None
    peak_memory_mb: float | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def resources(self) -> Resources:
        """What it asked for."""
        asked = self.spec["resources"]
        return Resources(float(asked["vcpu"]), int(asked["memory_mb"]), float(asked.get("gpus", 0.0)))

    @property
    def seconds(self) -> float:
        """How long it ran; 0 where it never did."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return (self.ended_at - self.started_at).total_seconds()

"""What an executor is told to run: everything resolved, nothing to look up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from easel.declare.job import Runnable
from easel.declare.resources import Resources
from easel.records.job import StoredFile

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much of a log is kept: its first and its last bytes, and of each line its beginning."""

    head_bytes: int = 8 * MB
    tail_bytes: int = 4 * MB
    line_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt at one job. `code` and `input` list files whose bytes are in the blob store."""

    job_id: str
    attempt: int
    project_id: str
    run: Runnable
    resources: Resources = field(default_factory=Resources)
    code: tuple[StoredFile, ...] = ()
    input: tuple[StoredFile, ...] = ()
    output_folder: str = "output"
    python: str | None = None
    image: str | None = None
    network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float | None = None
    disk_mb: int = 20 * 1024
    grace_s: float = 5.0
    log: LogLimits = field(default_factory=LogLimits)

    @property
    def key(self) -> str:
        """Names the attempt: also its folder and its control group."""
        return f"{self.job_id}.{self.attempt}"

    def without_secrets(self) -> Order:
        return replace(self, secrets={})


ORDER: TypeAdapter[Order] = TypeAdapter(Order)

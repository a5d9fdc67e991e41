"""What an executor is told to run: everything resolved, nothing to look up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from easel.declare.job import Runnable
from easel.declare.resources import Resources
from easel.records.attempt import AttemptKey
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
    """One attempt at one job. `code` and `input` list files whose bytes are in the blob store.

    `wants` are labels that its device must have; `workers` says how many devices run it side by side, of which
    this one is number `rank`.
    """

    job_id: str
    attempt: int
    project_id: str
    run: Runnable
    resources: Resources = field(default_factory=Resources)
    code: tuple[StoredFile, ...] = ()
    executable: tuple[str, ...] = ()
    input: tuple[StoredFile, ...] = ()
    output_folder: str = "output"
    python: str | None = None
    image: str | None = None
    requirements: str | None = None
    requirements_digest: str | None = None
    """The hash of that file, where the server wants to know what it was locked to; empty where it does not know it."""
    locks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What that file was locked to before, by what it asked for on which kind of machine."""
    index_url: str | None = None
    wheels: str | None = None
    network: bool = False
    host_network: bool = False
    tracking: str | None = None
    """The address of MLflow's API of its project, as the server knows itself."""
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float | None = None
    disk_mb: int = 20 * 1024
    processes: int = 1024
    grace_s: float = 5.0
    log: LogLimits = field(default_factory=LogLimits)
    wants: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    rank: int = 0
    resume: tuple[StoredFile, ...] = ()
    """What the checkpoint folder of a trial begins with: what an earlier slice left."""
    port: int | None = None
    first: bool = False
    """Whether it goes before what waits on the device already: nothing else of its owner is active."""
    preemptible: bool = False
    """Whether it has a checkpoint folder that outlives its attempts."""
    slice: bool = False
    """Whether what it leaves in its checkpoint folder becomes part of its output."""
    idle_s: float | None = None
    """Of an interactive session: how long it may do nothing before it is saved and ended."""

    @property
    def gang(self) -> str:
        """Names the attempt, of which a distributed job has several members."""
        return str(AttemptKey(self.job_id, self.attempt))

    @property
    def key(self) -> str:
        """Names this member of it: also its folder and its control group."""
        return str(AttemptKey(self.job_id, self.attempt, self.rank))

    def without_secrets(self) -> Order:
        return replace(self, secrets={})


ORDER: TypeAdapter[Order] = TypeAdapter(Order)

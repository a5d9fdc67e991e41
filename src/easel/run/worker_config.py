"""What a worker is told when it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from easel.declare.resources import Room
from easel.lake.cache import BlobCache


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much the cache of files for jobs keeps, how long, and how much room it leaves on the disk."""

    most_mb: int = 51_200
    days: float = 30.0
    least_free_mb: int = 256

    def cache(self, folder: Path) -> BlobCache:
        return BlobCache(folder, self.most_mb << 20, days=self.days, least_free=self.least_free_mb << 20)


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """`home` is the platform's folder; `depot` says where bytes are; `preload` what the fork server imports.

    `credentials` are variables that open the depot. They go into the worker's environment, never on its command line.
    """

    home: Path
    name: str
    capacity: Room
    depot: str
    preload: tuple[str, ...] = ()
    warm: bool = True
    sandbox: bool = True
    """Whether user code runs behind walls where that works."""
    unsandboxed: bool = False
    """Whether an admin allows user code without walls. Otherwise a device without a sandbox refuses it."""
    interpreters: tuple[Path, ...] = ()
    """Interpreters and environments of this machine that jobs may name."""
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    orphan_after_s: float | None = None
    """A worker that a server started ends when it has been without controller and work for so long."""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    parent: int | None = None
    """Ends, with everything on it, when the process with this number does: its place is somebody else's then."""

    @property
    def attempts(self) -> Path:
        return self.home / "run" / "attempts"

    @property
    def cache(self) -> Path:
        """Blobs that the jobs of this machine share."""
        return self.home / "cache"


def describe(config: WorkerConfig) -> str:
    """Everything but the credentials: the line may be seen by others."""
    room = config.capacity
    return json.dumps(
        {
            "home": str(config.home),
            "name": config.name,
            "capacity": [room.vcpu, room.memory_mb, list(room.gpus)],
            "depot": config.depot,
            "preload": list(config.preload),
            "warm": config.warm,
            "sandbox": config.sandbox,
            "unsandboxed": config.unsandboxed,
            "interpreters": [str(path) for path in config.interpreters],
            "cache": asdict(config.cache_limits),
            "orphan_after_s": config.orphan_after_s,
            "parent": config.parent,
        }
    )


def read_config(text: str) -> WorkerConfig:
    """What `describe` wrote."""
    body = json.loads(text)
    vcpu, memory_mb, gpus = body["capacity"]
    return WorkerConfig(
        Path(body["home"]),
        body["name"],
        Room(vcpu, memory_mb, tuple(gpus)),
        body["depot"],
        tuple(body["preload"]),
        body["warm"],
        body["sandbox"],
        body["unsandboxed"],
        tuple(map(Path, body["interpreters"])),
        CacheLimits(**body["cache"]),
        body["orphan_after_s"],
        parent=body["parent"],
    )

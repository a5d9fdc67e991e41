"""What a worker is told when it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from easel.declare.resources import Room


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """`home` is the platform's folder; `depot` says where bytes are; `preload` what the nursery imports.

    `credentials` are variables that open the depot. They go into the worker's environment, never on its command line.
    """

    home: Path
    name: str
    capacity: Room
    depot: str
    preload: tuple[str, ...] = ()
    warm: bool = True
    sandbox: bool = True
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
        body["orphan_after_s"],
        parent=body["parent"],
    )

"""What a cluster that exists already must do for us: start workers, say which there are, stop them.

Everything else (orders, logs, fencing, retries) is between those workers and the server. Each sentence here has a
test over Ray and over Slurm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from easel.declare.resources import Resources, Room
from easel.records.worker import Placement


class PlacementState(Enum):
    WAITING = "waiting"
    UP = "up"
    PUT_BACK = "put back"
    """It ran, and waits to be started once more: the engine did that by itself."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """How a placed worker finds us. The token travels in files or memory, never in arguments."""

    server: str
    token: str = field(repr=False)
    executor: str
    idle_exit_s: float
    variables: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Calls may take seconds and raise TryLater: they are made by a thread of their own."""

    name: str

    def place(self, placement: Placement, plan: WorkerPlan) -> str:
        """Ask for workers named `name` (`name-1`, … beside it); returns the engine's own name for them.

        They have the placement's resources each, end by themselves when idle, and are never restarted behind our
        back with what they had.
        """

    def standings(self) -> Mapping[str, PlacementState]:
        """The placements that wait or run, by name, whoever asked for them: with any of their workers."""

    def why(self, placement: Placement) -> str:
        """How a placement that is not there any more ended, as far as the engine knows."""

    def cancel(self, placement: Placement) -> None:
        """End it; one that is gone already is fine."""

    def capacity(self) -> Sequence[Room]:
        """What each machine of the cluster has."""

    def close(self) -> None: ...


def command(placement: Placement, plan: WorkerPlan, member: int, home: str, python: str) -> list[str]:
    """The worker's command line on a machine of the cluster."""
    asked: Resources = placement.resources
    words = [
        *(python, "-m", "easel.cli.main", "worker", "--server", plan.server),
        *("--name", placement.members[member]),
        *("--home", home, "--executor", plan.executor, "--with-parent", "--home-for-once"),
        *(
            "--vcpu",
            f"{asked.vcpu:g}",
            "--memory-mb",
            str(asked.memory_mb),
            "--gpus",
            str(math.ceil(asked.gpus)),
        ),
        *("--idle-exit", f"{plan.idle_exit_s:g}"),
    ]
    if placement.time_s is not None:
        words += ["--lasts", f"{placement.time_s:g}"]
    return words

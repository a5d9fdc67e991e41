"""One share for everybody: usage that fades with time, held against weights, decides whose turn it is.

Deciding only. What somebody uses is counted in core-seconds (`load` × seconds), faded by half every half-life, and
divided by the weight; the smallest goes first, projects against each other and then users within a project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from easel.declare.resources import Resources
from easel.records.queue import Line, Owner

HALF_LIFE_S = 7 * 24 * 3600.0
MB_PER_CORE, CORES_PER_GPU = 4096.0, 8.0
"""What counts as much as one core."""
LEAST_WEIGHT = 1e-6


def load(asked: Resources) -> float:
    """How many cores a job counts for: those it asks for, or as many as its memory or GPUs take from others."""
    return max(asked.vcpu, asked.memory_mb / MB_PER_CORE, CORES_PER_GPU * asked.gpus)


def faded(usage: float, seconds: float, half_life_s: float) -> float:
    """What is left of `usage` after `seconds`; a clock that was set back fades nothing."""
    return float(usage * 0.5 ** (max(seconds, 0.0) / half_life_s))


@dataclass
class Shares:
    """Usage of projects and users while jobs are let through one after the other."""

    users: dict[Owner, float] = field(default_factory=dict)
    projects: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line], others: Mapping[Owner, float] | None = None) -> Shares:
        """Returns the shares by usage; `others` wait for nothing, but their projects' usage counts."""
        made = cls()
        for owner, usage in (others or {}).items():
            made.add(owner, usage)
        for line in lines:
            if others is None or line.owner not in others:
                made.add(line.owner, line.usage)
        return made

    def add(self, owner: Owner, usage: float) -> None:
        self.users[owner] = self.users.get(owner, 0.0) + usage
        self.projects[owner[0]] = self.projects.get(owner[0], 0.0) + usage

    def claim(self, line: Line) -> tuple[float, float, float]:
        """Smaller goes first: priority, then the project's used share, then the user's within it."""
        return (
            -float(line.priority),
            self.projects.get(line.owner[0], 0.0) / max(line.project_weight, LEAST_WEIGHT),
            self.users.get(line.owner, 0.0) / max(line.weight, LEAST_WEIGHT),
        )

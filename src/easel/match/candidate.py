"""A candidate: one way to learn an app, as a value that is scheduled and that the trial function runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

Setting: TypeAlias = str | float | int

GRID = "grid"
"""A learning rate that the trial itself finds, in place of candidates for each."""


@dataclass(frozen=True)
class Candidate:
    """Model family × augmentation × hyperparameters.

    `cost_s` is the estimated training time on the reference core, `promise` in [0, 1] the prior belief about
    its quality relative to its siblings; neither is part of its identity.
    """

    family: str
    settings: tuple[tuple[str, Setting], ...] = ()
    cost_s: float = field(default=1.0, compare=False)
    promise: float = field(default=0.5, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    @cached_property
    def name(self) -> str:
        """Stable and readable: `convnet(augment=affine, lr=0.003, width=0.5)`."""
        inside = ", ".join(
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in self.settings
        )
        return f"{self.family}({inside})" if inside else self.family

    def text(self, key: str, default: str) -> str:
        return str(dict(self.settings).get(key, default))

    def number(self, key: str, default: float) -> float:
        return float(dict(self.settings).get(key, default))

    def features(self) -> dict[str, float | str]:
        """Returns features for a kernel over candidates: family, log cost, hyperparameters (log scale)."""
        found: dict[str, float | str] = {"family": self.family, "log_cost": math.log(max(self.cost_s, 1e-3))}
        for key, value in self.settings:
            positive = isinstance(value, float | int) and not isinstance(value, bool) and value > 0
            found[key] = math.log(float(value)) if positive else str(value)
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "settings": dict(self.settings),
            "cost_s": self.cost_s,
            "promise": self.promise,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Candidate:
        return cls(raw["family"], tuple(raw["settings"].items()), raw["cost_s"], raw["promise"])

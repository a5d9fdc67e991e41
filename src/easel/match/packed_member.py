"""One network of several that are trained together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor, nn

from easel.match.loop import Schedule


@dataclass(frozen=True)
class PackedMember:
    """A network with the rows it learns from and is judged on, its own schedule, and where its checkpoint lies.

    The checkpoint is the one that `loop.fit` writes: a member can be gone on with alone.
    """

    network: nn.Module
    train: Tensor
    validate: Tensor
    schedule: Schedule
    checkpoint: Path | None = None


class Pack(Protocol):
    """Several networks where they train."""

    def epoch(self, number: int, seed: int) -> Tensor:
        """Trains all members for one epoch; returns their mean losses `(members,)`, on the device."""

    def validated(self) -> Tensor:
        """Returns the mean validation loss of each member `(members,)`, on the device."""

    def keep(self, better: Sequence[int]) -> None:
        """Remembers the weights that these members have now."""

    def best(self, number: int) -> dict[str, Tensor]:
        """Returns what was last kept of a member."""

"""One network of several that are trained together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from easel.match.checkpoint import TrainingState
from easel.match.device_data import Batch
from easel.match.loop import Schedule
from easel.match.train_steps import Augment


def as_it_is(batch: Batch) -> Batch:
    """Returns a batch that is not augmented."""
    return batch


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
    augment: Augment = as_it_is


class PackedTraining(Protocol):
    """Several networks where they train."""

    def restore(self) -> list[TrainingState]:
        """Returns how far each member is, after putting it back to its checkpoint where it has one."""

    def epoch(self, number: int, seed: int) -> Tensor:
        """Trains all members for one epoch; returns their mean losses `(members,)`, on the device."""

    def validated(self) -> Tensor:
        """Returns the mean validation loss of each member `(members,)`, on the device."""

    def keep(self, better: Sequence[int]) -> None:
        """Remembers the weights that these members have now."""

    def best(self, number: int) -> dict[str, Tensor]:
        """Returns what was last kept of a member."""

    def snapshot(self, number: int) -> dict[str, Tensor]:
        """Returns all that a checkpoint of a member holds."""


def augmented(members: Sequence[PackedMember], inputs: Batch) -> Batch:
    """Returns the examples of all members, one member's after another's, each as its member wants them; neighbours that
    want the same are augmented at once."""
    runs = [(augment, len(list(some))) for augment, some in groupby(one.augment for one in members)]
    if len(runs) == 1:
        return runs[0][0](inputs)
    each = len(next(iter(inputs.values()))) // len(members)
    done, start = [], 0
    for augment, count in runs:
        end = start + count * each
        done.append(augment({name: tensor[start:end] for name, tensor in inputs.items()}))
        start = end
    return {name: torch.cat([one[name] for one in done]) for name in inputs}

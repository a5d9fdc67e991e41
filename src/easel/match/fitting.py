"""What the networks of a trial are made from, and what came of them. Values, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from easel.match.candidate import GRID, Candidate
from easel.match.device_data import Data
from easel.match.encode.images import PictureEncoder
from easel.match.family import NetworkFamily
from easel.match.loop import Schedule, predict
from easel.match.networks import Wiring
from easel.match.registry import network_family
from easel.match.split import Round
from easel.match.targets import Classes, Values
from easel.match.train import Conditions
from easel.match.train_steps import Objective

Vectors: TypeAlias = Mapping[str, Sequence[float]]
"""Words and where they lie."""
PART, FEWEST_TO_PART = 8, 40


@dataclass(frozen=True)
class Fitting:
    """All that the networks of a trial are made from."""

    candidate: Candidate
    wiring: Wiring
    objective: Callable[[Candidate, Wiring, float], Objective]
    data: Data
    plan: tuple[Round, ...]
    conditions: Conditions
    vectors: Vectors
    labels: NDArray[Any] | None = None
    """The class of every example, where there are classes."""

    @property
    def family(self) -> NetworkFamily:
        return network_family(self.candidate)

    @property
    def still(self) -> bool:
        """A picture whose answer does not move with it: only then may it be turned and shifted."""
        source, target = self.wiring.source, self.wiring.target
        return isinstance(source, PictureEncoder) and isinstance(target, Classes | Values)

    def parts(self, number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """What a round learns from, and what its curve is of. A recipe that keeps its last epoch chooses nothing by the
        latter and learns from all of it, unless several rates are compared by it."""
        one = self.plan[number]
        learn, stop = inner_split(one.train, self.labels, number % seeds_of(self.candidate))
        chooses = self.family.chooses or self.candidate.text("lr", "") == GRID
        return (learn if chooses else one.train), stop


@dataclass(frozen=True)
class Bag:
    """`predicted` are the answers for the validated examples, in the order of the rounds; `loss` is the mean of the
    rounds' best validation losses.
    """

    networks: tuple[nn.Module, ...]
    predicted: NDArray[Any]
    loss: float
    stopped: str
    curves: tuple[tuple[tuple[float, float], ...], ...]
    resumed: int
    reached: float = 1.0
    halved: int = 0
    """How often it had to do with less memory of the GPU than it wanted: smaller batches, networks in turn."""


@dataclass(frozen=True)
class RateTry:
    """One learning rate: the `number`-th `of` so many."""

    rate: float
    number: int = 0
    of: int = 1

    def checkpoint(self, conditions: Conditions, round_number: int) -> Path | None:
        """Returns where the network of a round keeps its checkpoint."""
        mine = f"rate-{self.number}-" if self.of > 1 else ""
        folder = conditions.checkpoints
        return None if folder is None else folder / f"{mine}round-{round_number}.safetensors"

    def share(self, of_rounds: float) -> float:
        """Returns the share of the whole trial that is done when this share of its own rounds is."""
        return (self.number + of_rounds) / self.of


def schedule_of(fitting: Fitting, number: int, rate: float) -> Schedule:
    """Returns the schedule of a round at a learning rate."""
    conditions, family = fitting.conditions, fitting.family
    epochs = conditions.epochs or family.epochs(len(fitting.plan[number].train))
    # rounded up: a slice that stopped short of its rung would be asked for again and again
    until = None if conditions.until is None else max(1, math.ceil(conditions.until * epochs - 1e-6))
    return Schedule(
        epochs, rate, patience=15 if family.chooses else epochs, chooses=family.chooses, until=until
    )


def seeds_of(candidate: Candidate) -> int:
    """Returns how many networks, which differ by their seeds and by what they learn from, answer together."""
    return max(1, int(candidate.number("bag", 1)))


def inner_split(
    rows: NDArray[np.intp], labels: NDArray[Any] | None, turn: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """What a round learns from, and every eighth example of each class, by which it chooses its epoch: never the fold
    that scores it. Where a round has few examples they all do both. With each `turn` it is another eighth.
    """
    if len(rows) < FEWEST_TO_PART:
        return rows, rows
    order = rows if labels is None else rows[np.argsort(labels[rows], kind="stable")]
    held = np.zeros(len(order), dtype=bool)
    held[(PART // 2 + turn) % PART :: PART] = True
    return np.sort(order[~held]), np.sort(order[held])


def answers_of(network: nn.Module, data: Data) -> torch.Tensor:
    """Returns a network's raw answers, in order, on the CPU."""
    parts = torch.split(torch.arange(len(data)), 4096)
    return torch.cat([predict(network, data.take(part, data.device)[0]) for part in parts])


def deadline(conditions: Conditions, began: float, share: float) -> Callable[[], bool]:
    """Returns what says whether this share of the time is over."""
    ends = began + conditions.budget_s * share
    return lambda: conditions.clock() > ends

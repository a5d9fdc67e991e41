"""Candidate + encoders → a network of the zoo with the right sides, again at training and at loading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from easel.match.candidate import Candidate
from easel.match.encode.bits import BitEncoder
from easel.match.encode.images import PictureEncoder
from easel.match.encode.series import SeriesEncoder, TreeEncoder
from easel.match.encode.table_tensors import TableTensorEncoder
from easel.match.encode.texts import TextEncoder
from easel.match.registry import network_family
from easel.match.targets import Classes, Values

Source: TypeAlias = (
    PictureEncoder | SeriesEncoder | TreeEncoder | TextEncoder | BitEncoder | TableTensorEncoder
)
Target: TypeAlias = Classes | Values | PictureEncoder | SeriesEncoder | BitEncoder


@dataclass(frozen=True)
class Wiring:
    """What a network reads and what it answers with."""

    source: Source
    target: Target

    @property
    def outputs(self) -> int:
        match self.target:
            case Classes(names):
                return len(names)
            case Values(width):
                return width
            case SeriesEncoder(steps):
                return steps.width
            case PictureEncoder(channels=channels):
                return channels
            case BitEncoder(length=length):
                return length


def build_network(candidate: Candidate, wiring: Wiring, seed: int = 0) -> nn.Module:
    """The untrained network of a candidate."""
    return network_family(candidate).network(candidate, wiring, seed)

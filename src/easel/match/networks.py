"""Candidate + encoders → a network of the zoo with the right sides, again at training and at loading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from easel.match.candidate import Candidate
from easel.match.encode.bits import BitEncoder
from easel.match.encode.images import PictureEncoder
from easel.match.encode.series import SeriesEncoder, TreeEncoder
from easel.match.encode.texts import TextEncoder
from easel.match.targets import Classes, Values
from easel.match.zoo.images import build_image_network
from easel.match.zoo.minirocket import MiniRocket
from easel.match.zoo.recovery import HourGlass
from easel.match.zoo.seq2seq import Seq2Seq
from easel.match.zoo.series import build_series_network
from easel.match.zoo.structured import BitAutoEncoder, BitRNN, TextNetwork, TreeLSTM

Source: TypeAlias = PictureEncoder | SeriesEncoder | TreeEncoder | TextEncoder | BitEncoder
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
    width = candidate.number("width", 1.0)
    family, outputs = candidate.family, wiring.outputs
    match wiring.source, wiring.target:
        case PictureEncoder(h, w, c), PictureEncoder(oh, ow, oc):
            return HourGlass((c, h, w), (oc, oh, ow), width, skips=family != "autoencoder")
        case PictureEncoder(h, w, c), _:
            return build_image_network(family, (c, h, w), outputs, width)
        case SeriesEncoder(steps, _), SeriesEncoder(answer, length):
            return Seq2Seq(steps.width, answer.width, length, width)
        case SeriesEncoder(steps, length), _ if family == "minirocket":
            features = int(candidate.number("features", 9_996))
            return MiniRocket(steps.width, length, outputs, features, seed)
        case SeriesEncoder(steps, _), _:
            return build_series_network(family, steps.width, outputs, width)
        case TreeEncoder(steps, pointers), _:
            return TreeLSTM(steps.width, pointers, outputs, width)
        case TextEncoder(words), _:
            return TextNetwork(len(words) + 2, outputs, width, int(candidate.number("vectors", 100)))
        case BitEncoder(length=length), BitEncoder(length=answer_length):
            return BitAutoEncoder(length, answer_length, width)
        case _:
            return BitRNN(outputs, width)

"""The image networks of the paper's figure 6, with a small convnet first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate, Setting
from easel.match.family import Alternative, NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring

REFERENCE_GFLOPS = 15.0
"""Sustained single-precision speed of one core of the reference machine while training a convolution."""


def _plan(promise: float, rate: float, width: float, situation: Situation) -> Plan:
    side = situation.summary.side
    # Small pictures (digits, cells) rarely gain from mirroring; photographs do.
    augment, other = ("affine", "flip") if side <= 40 else ("flip", "affine")
    base: tuple[tuple[str, Setting], ...] = (("augment", augment), ("lr", rate), ("width", width))
    choices: list[Alternative] = [
        ("lr", rate / 3, 0.01),
        ("width", 1.0, 0.0),
        ("augment", other, 0.03),
        ("augment", "none", 0.03),
    ]
    if width > 0.25:
        choices.append(("width", 0.25, 0.03))
    if side > 64:
        base = (*base, ("side", 64))
        choices.append(("side", 224, 0.0))
    return Plan(promise, base, (*choices, *situation.scales))


def _cost(gflop: float, candidate: Candidate, summary: DataSummary) -> float:
    n, width = summary.examples, candidate.number("width", 1.0)
    side = min(summary.side, candidate.number("side", 224.0))
    pixels = side**2 if summary.side > 1 else summary.cells
    # Above 64 pixels the stem shrinks the picture by 4 on each side.
    work = pixels / 1024 if side < 64 else pixels / 1024 / 14
    total = 3 * gflop * work * max(width, 0.15) ** 1.7 * n * epochs_for(60, n)
    return float(1.0 + rounds_of(n) * (0.5 + total / REFERENCE_GFLOPS))


def _network(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.images import PictureEncoder
    from easel.match.zoo.images import build_image_network

    source = wiring.source
    assert isinstance(source, PictureEncoder)
    shape = (source.channels, source.height, source.width)
    return build_image_network(candidate.family, shape, wiring.outputs, candidate.number("width", 1.0))


def _family(
    name: str, gflop: float, promise: float = 0.7, rate: float = 1e-3, width: float = 0.25
) -> NetworkFamily:
    """`gflop`: operations of one forward pass at 3 × 32 × 32 and width 1, in units of 1e9."""
    return NetworkFamily(
        name=name,
        fits=fits(TemplateKind.IMAGE),
        plan=lambda situation: _plan(promise, rate, width, situation),
        cost=lambda candidate, summary: _cost(gflop, candidate, summary),
        network=_network,
    )


FAMILIES = (
    _family("convnet", 0.049, 0.85, 3e-3, 0.5),
    _family("alexnet", 0.51),
    _family("resnet18", 1.11, 0.84, 3e-3),
    _family("resnet50", 2.6, 0.78),
    _family("googlenet", 2.9, 0.8),
    _family("squeezenet", 0.047, rate=3e-3),
    _family("vgg16", 0.68),
    _family("nin", 0.45, rate=3e-3),
    _family("bn_alexnet", 0.51, 0.72),
)

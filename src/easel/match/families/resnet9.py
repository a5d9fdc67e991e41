"""ResNet-9 trained as small pictures are trained today.

One cycle of the learning rate to its end, label smoothing, mixed pictures, a moving average of the weights, several
views of each picture when it answers, and where asked for a bag of several networks, trained together on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate, Setting
from easel.match.families.images import REFERENCE_GFLOPS
from easel.match.family import Alternative, NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring
    from easel.match.train_steps import Objective

MOST_EPOCHS, SEEN = 120, 400_000
"""Five times as long as the other networks: seconds on a GPU, an hour on a core."""
GFLOP = 1.9
"""One forward pass at 3 × 32 × 32 and width 1."""
SMALL_SIDE = 40
"""Digits, letters and cells are rarely larger; they are bent and not mirrored."""


def _plan(situation: Situation) -> Plan:
    small = situation.summary.side <= SMALL_SIDE
    augment, other = ("warp", "flip") if small else ("flip", "warp")
    base: tuple[tuple[str, Setting], ...] = (
        ("augment", augment),
        ("lr", 3e-3),
        ("mix", "none" if small else "cutmix"),
        ("width", 0.25),
    )
    choices: list[Alternative] = [
        ("width", 0.5, 0.0),
        ("bag", 4, 0.0),
        ("mix", "cutmix" if small else "none", 0.02),
        ("mix", "mixup", 0.02),
        ("augment", other, 0.03),
        ("lr", 1e-3, 0.02),
    ]
    if situation.summary.side > 64:
        base = (*base, ("side", 64))
        choices.append(("side", 128, 0.0))
    return Plan(0.87, base, (*choices, *situation.scales))


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    n, width = summary.examples, candidate.number("width", 1.0)
    side = min(summary.side, candidate.number("side", 224.0))
    pixels = side**2 if summary.side > 1 else summary.cells
    work = pixels / 1024 if side < 64 else pixels / 1024 / 14
    total = 3 * GFLOP * work * max(width, 0.15) ** 1.7 * n * epochs_for(MOST_EPOCHS, n, SEEN)
    return float(1.0 + rounds_of(n) * candidate.number("bag", 1) * (0.5 + total / REFERENCE_GFLOPS))


def _network(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.images import PictureEncoder
    from easel.match.zoo.averaged import resnet9
    from easel.match.zoo.canvas import Canvas

    source = wiring.source
    assert isinstance(source, PictureEncoder)
    views = "mirrored" if candidate.text("augment", "none") == "flip" else "shifted"
    canvas = Canvas(source.channels, source.height, source.width)
    return resnet9(canvas, wiring.outputs, candidate.number("width", 1.0), views)


def _objective(candidate: Candidate, wiring: Wiring, rate: float) -> Objective:
    from easel.match.objectives import ClassObjective, MixedObjective

    how = candidate.text("mix", "none")
    return ClassObjective(smoothing=0.1) if how == "none" else MixedObjective(how)


FAMILIES = (
    NetworkFamily(
        name="resnet9",
        fits=fits(TemplateKind.IMAGE, tasks=(Task.CLASSIFY,)),
        plan=_plan,
        cost=_cost,
        network=_network,
        objective=_objective,
        chooses=False,
        most_epochs=MOST_EPOCHS,
        seen=SEEN,
    ),
)

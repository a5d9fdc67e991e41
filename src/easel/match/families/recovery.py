"""Networks from pictures to pictures: U-Net, auto-encoder, pix2pix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate
from easel.match.family import NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring
    from easel.match.train_steps import Objective


def _plan(promise: float, situation: Situation) -> Plan:
    other = (("width", 1.0, 0.0), ("lr", 5e-4, 0.05), *situation.scales)
    return Plan(promise, (("width", 0.5), ("lr", 2e-3)), other)


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    n, width = summary.examples, candidate.number("width", 1.0)
    return float(1.0 + rounds_of(n) * n * epochs_for(60, n) * summary.cells * 2e-6 * width**1.7)


def _hourglass(candidate: Candidate, wiring: Wiring, *, skips: bool) -> nn.Module:
    from easel.match.encode.images import PictureEncoder
    from easel.match.zoo.recovery import HourGlass

    before, after = wiring.source, wiring.target
    assert isinstance(before, PictureEncoder)
    assert isinstance(after, PictureEncoder)
    shapes = [(one.channels, one.height, one.width) for one in (before, after)]
    return HourGlass(shapes[0], shapes[1], candidate.number("width", 1.0), skips=skips)


def _with_skips(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    return _hourglass(candidate, wiring, skips=True)


def _without_skips(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    return _hourglass(candidate, wiring, skips=False)


def _adversarial(candidate: Candidate, wiring: Wiring, rate: float) -> Objective:
    from easel.match.encode.images import PictureEncoder
    from easel.match.objectives import AdversarialObjective
    from easel.match.zoo.recovery import Critic

    assert isinstance(wiring.source, PictureEncoder)
    critic = Critic(wiring.source.channels + wiring.outputs, candidate.number("width", 1.0))
    return AdversarialObjective(critic, rate)


_FITS = fits(TemplateKind.IMAGE, tasks=(Task.RECOVER,))
FAMILIES = (
    NetworkFamily(
        name="unet", fits=_FITS, plan=lambda situation: _plan(0.8, situation), cost=_cost, network=_with_skips
    ),
    NetworkFamily(
        name="autoencoder",
        fits=_FITS,
        plan=lambda situation: _plan(0.6, situation),
        cost=_cost,
        network=_without_skips,
    ),
    NetworkFamily(
        name="pix2pix_gan",
        fits=_FITS,
        plan=lambda situation: _plan(0.7, situation),
        cost=lambda candidate, summary: 1.0 + 2 * (_cost(candidate, summary) - 1.0),
        network=_with_skips,
        objective=_adversarial,
    ),
)

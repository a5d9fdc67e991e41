"""A convolutional network with inception blocks over series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate
from easel.match.families.recurrent import series_plan
from easel.match.family import NetworkFamily, epochs_for, fits, rounds_of
from easel.match.kinds import TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring

MOST_EPOCHS = 120


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    n, width = summary.examples, candidate.number("width", 1.0)
    steps = n * epochs_for(MOST_EPOCHS, n) * summary.steps
    return float(1.0 + rounds_of(n) * steps * 2e-5 * (0.2 + 4 * width**2))


def _network(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import SeriesEncoder
    from easel.match.zoo.series import ConvolutionalSeries

    assert isinstance(wiring.source, SeriesEncoder)
    return ConvolutionalSeries(wiring.source.steps.width, wiring.outputs, candidate.number("width", 1.0))


FAMILIES = (
    NetworkFamily(
        name="fcn",
        fits=fits(TemplateKind.SERIES),
        plan=lambda situation: series_plan(0.85, situation),
        cost=_cost,
        network=_network,
        most_epochs=MOST_EPOCHS,
    ),
)

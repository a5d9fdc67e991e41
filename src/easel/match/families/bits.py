"""The general families: networks over the bits of any object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate
from easel.match.families.recurrent import recurrent_cost, recurrent_plan
from easel.match.family import NetworkFamily, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring


def _auto_cost(candidate: Candidate, summary: DataSummary) -> float:
    n = summary.examples
    return 1.0 + rounds_of(n) * n * epochs_for(60, n) * min(summary.cells, 500) * 4e-6


def _rnn(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.zoo.structured import BitRNN

    return BitRNN(wiring.outputs, candidate.number("width", 1.0))


def _auto(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.bits import BitEncoder
    from easel.match.zoo.structured import BitAutoEncoder

    assert isinstance(wiring.source, BitEncoder)
    return BitAutoEncoder(wiring.source.length, wiring.outputs, candidate.number("width", 1.0))


FAMILIES = (
    NetworkFamily(
        name="bit_rnn",
        fits=fits(TemplateKind.GENERAL, tasks=(Task.CLASSIFY,)),
        plan=recurrent_plan,
        cost=lambda candidate, summary: recurrent_cost(candidate, summary, 60),
        network=_rnn,
    ),
    NetworkFamily(
        name="bit_autoencoder",
        fits=fits(TemplateKind.GENERAL, tasks=(Task.REBUILD,)),
        plan=recurrent_plan,
        cost=_auto_cost,
        network=_auto,
    ),
)

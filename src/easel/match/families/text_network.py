"""Word embeddings and a small convolution, from the examples alone or from a given GloVe file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate
from easel.match.family import NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring


def _plan(situation: Situation) -> Plan:
    given = (("vectors", situation.vectors, -0.1),) if situation.vectors else ()
    return Plan(0.7, (("lr", 3e-3), ("width", 1.0)), (("lr", 1e-3, 0.02), *given))


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    n = summary.examples
    return 1.0 + rounds_of(n) * n * epochs_for(60, n) * min(summary.cells, 500) * 4e-6


def _network(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.texts import TextEncoder
    from easel.match.zoo.structured import TextNetwork

    assert isinstance(wiring.source, TextEncoder)
    words, size = len(wiring.source.words) + 2, int(candidate.number("vectors", 100))
    return TextNetwork(words, wiring.outputs, candidate.number("width", 1.0), size)


FAMILIES = (
    NetworkFamily(
        name="text_network",
        fits=fits(TemplateKind.TEXT, tasks=(Task.CLASSIFY,)),
        plan=_plan,
        cost=_cost,
        network=_network,
        takes_vectors=True,
    ),
)

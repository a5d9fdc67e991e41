"""Recurrent networks over series: RNN, LSTM, bi-LSTM, GRU, and sequence to sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.match.candidate import Candidate
from easel.match.family import NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring

MOST_EPOCHS = 120
_PROMISE = {"rnn": 0.55, "lstm": 0.66, "bilstm": 0.72, "gru": 0.7}


def series_plan(promise: float, situation: Situation) -> Plan:
    """Returns the plan of any network over series."""
    other = (("lr", 1e-3, 0.02), ("lr", 1e-2, 0.04), ("width", 1.0, 0.0), *situation.scales)
    return Plan(promise, (("lr", 3e-3), ("width", 0.5)), other)


def recurrent_plan(situation: Situation) -> Plan:
    """Returns the plan of networks over trees and from series to series."""
    other = (("lr", 1e-3, 0.05), ("lr", 1e-2, 0.1), ("width", 1.0, 0.02), *situation.scales)
    return Plan(0.6, (("width", 0.5), ("lr", 3e-3)), other)


def recurrent_cost(candidate: Candidate, summary: DataSummary, most: int = MOST_EPOCHS) -> float:
    n, width = summary.examples, candidate.number("width", 1.0)
    steps = n * epochs_for(most, n) * summary.steps
    return float(1.0 + rounds_of(n) * steps * 2.5e-5 * (1 + 3 * width**2))


def _network(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import SeriesEncoder
    from easel.match.zoo.series import Recurrent

    assert isinstance(wiring.source, SeriesEncoder)
    width = candidate.number("width", 1.0)
    return Recurrent(candidate.family, wiring.source.steps.width, wiring.outputs, width)


def _translator(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import SeriesEncoder
    from easel.match.zoo.seq2seq import Seq2Seq

    source, target = wiring.source, wiring.target
    assert isinstance(source, SeriesEncoder)
    assert isinstance(target, SeriesEncoder)
    return Seq2Seq(source.steps.width, target.steps.width, target.length, candidate.number("width", 1.0))


def _family(name: str, promise: float) -> NetworkFamily:
    return NetworkFamily(
        name=name,
        fits=fits(TemplateKind.SERIES),
        plan=lambda situation: series_plan(promise, situation),
        cost=recurrent_cost,
        network=_network,
        most_epochs=MOST_EPOCHS,
    )


FAMILIES = (
    *(_family(name, promise) for name, promise in _PROMISE.items()),
    NetworkFamily(
        name="seq2seq",
        fits=fits(TemplateKind.SERIES, tasks=(Task.TRANSLATE,)),
        plan=recurrent_plan,
        cost=recurrent_cost,
        network=_translator,
        most_epochs=MOST_EPOCHS,
    ),
)

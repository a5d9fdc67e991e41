"""Networks over tables: RealMLP's and TabM's recipes in our own code, on torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.examples import Object
from easel.match.family import NetworkFamily, Plan, Situation, epochs_for, fits, rounds_of
from easel.match.kinds import Task, TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import Tensor, nn

    from easel.match.device_data import Batch
    from easel.match.networks import Wiring
    from easel.match.train_steps import Objective

_FITS = fits(TemplateKind.TABLE) | fits(TemplateKind.MULTI_OUTPUT, tasks=(Task.REGRESS,))
MOST_EPOCHS = 60
SMOOTHING = 0.05


def _encode(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> Any:
    from easel.match.encode.table_tensors import fit_table_tensors

    return fit_table_tensors(program.input, inputs)


def _own_encoder() -> type:
    from easel.match.encode.table_tensors import TableTensorEncoder

    return TableTensorEncoder


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    """Three passes through about `(4 d + 2 h) h` weights for every member of the ensemble."""
    n, hidden, members = summary.examples, candidate.number("hidden", 128), candidate.number("members", 1)
    work = (4 * summary.cells + 2 * hidden) * hidden * members
    return 1.5 + rounds_of(n) * n * epochs_for(MOST_EPOCHS, n) * (3e-6 + work * 5e-10)


def _real_plan(situation: Situation) -> Plan:
    return Plan(
        0.82,
        (("lr", 2e-3), ("hidden", 256), ("dropout", 0.15)),
        (("lr", 5e-3, 0.02), ("lr", 6e-4, 0.02), ("dropout", 0.4, 0.01)),
    )


def _real(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.table_tensors import TableTensorEncoder
    from easel.match.zoo.tabular import RealMLP

    source = wiring.source
    assert isinstance(source, TableTensorEncoder)
    hidden, dropout = int(candidate.number("hidden", 256)), candidate.number("dropout", 0.15)
    return RealMLP(source.numbers, source.sizes, wiring.outputs, hidden, dropout)


def _tabm_plan(situation: Situation) -> Plan:
    return Plan(
        0.84,
        (("lr", 2e-3), ("hidden", 128), ("members", 8)),
        (("lr", 6e-4, 0.02), ("hidden", 256, 0.0), ("members", 16, 0.0)),
    )


def _tabm(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.table_tensors import TableTensorEncoder
    from easel.match.targets import Classes
    from easel.match.zoo.tabular import TabM

    source = wiring.source
    assert isinstance(source, TableTensorEncoder)
    return TabM(
        source.numbers,
        source.sizes,
        wiring.outputs,
        int(candidate.number("hidden", 128)),
        int(candidate.number("members", 8)),
        classify=isinstance(wiring.target, Classes),
    )


class _EachMember:
    """Every member learns by itself; judged is the mean that serves."""

    def __init__(self, classify: bool) -> None:
        self.classify = classify

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        from torch.nn import functional

        from easel.match.objectives import smoothed_loss
        from easel.match.zoo.tabular import TabM

        assert isinstance(network, TabM)
        answers = network.members(**batch) if training else network(**batch).unsqueeze(1)
        count = answers.shape[1]
        truth = target["y"].repeat_interleave(count, dim=0)
        flat = answers.float().flatten(0, 1)
        if self.classify:
            if not training:
                return smoothed_loss(flat, truth, SMOOTHING)
            return functional.cross_entropy(flat, truth, label_smoothing=SMOOTHING)
        return functional.mse_loss(flat, truth)


def _objective(candidate: Candidate, wiring: Wiring, rate: float) -> Objective:
    from easel.match.targets import Classes

    return _EachMember(isinstance(wiring.target, Classes))


FAMILIES = (
    NetworkFamily(
        name="real_mlp",
        fits=_FITS,
        plan=_real_plan,
        cost=_cost,
        encode=_encode,
        own_encoder=_own_encoder,
        network=_real,
        most_epochs=MOST_EPOCHS,
    ),
    NetworkFamily(
        name="tabm",
        fits=_FITS,
        plan=_tabm_plan,
        cost=_cost,
        encode=_encode,
        own_encoder=_own_encoder,
        network=_tabm,
        objective=_objective,
        most_epochs=MOST_EPOCHS,
    ),
)

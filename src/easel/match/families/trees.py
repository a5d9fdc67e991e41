"""Models of trees: an N-ary Tree-LSTM, and an SVM with a subtree kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.examples import Object
from easel.match.families.recurrent import recurrent_cost, recurrent_plan
from easel.match.family import EstimatorFamily, MatrixShape, NetworkFamily, Plan, Situation, fits, table_cost
from easel.match.kinds import Task, TemplateKind

if TYPE_CHECKING:
    from torch import nn

    from easel.match.networks import Wiring


def _lstm(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import TreeEncoder
    from easel.match.zoo.structured import TreeLSTM

    source = wiring.source
    assert isinstance(source, TreeEncoder)
    return TreeLSTM(source.steps.width, source.pointers, wiring.outputs, candidate.number("width", 1.0))


def _kernel_plan(situation: Situation) -> Plan:
    return Plan(0.6, (("C", 1.0),), (("C", 0.1, 0.05), ("C", 10.0, 0.05)))


def _subtrees(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> Any:
    from easel.match.encode.subtrees import fit_subtrees

    return fit_subtrees(inputs)


def _kernel(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.svm import LinearSVC

    from easel.match.estimators import after_columns

    return after_columns(LinearSVC(C=candidate.number("C", 1.0), random_state=shape.seed), shape)


FAMILIES = (
    NetworkFamily(
        name="tree_lstm",
        fits=fits(TemplateKind.TREE, tasks=(Task.CLASSIFY,)),
        plan=recurrent_plan,
        cost=recurrent_cost,
        network=_lstm,
        most_epochs=120,
    ),
    EstimatorFamily(
        name="tree_kernel_svm",
        fits=fits(TemplateKind.TREE, tasks=(Task.CLASSIFY,)),
        plan=_kernel_plan,
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        encode=_subtrees,
        estimator=_kernel,
    ),
)

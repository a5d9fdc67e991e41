"""scikit-learn's multi-layer perceptron, and the averaged perceptron."""

from __future__ import annotations

from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, MatrixShape, Plan, Situation, epochs_for, fits, table_cost
from easel.match.kinds import Task, TemplateKind


def _network_plan(situation: Situation) -> Plan:
    return Plan(
        0.78,
        (("lr", 1e-3), ("hidden", 128)),
        (("lr", 1e-2, 0.03), ("hidden", 512, 0.0), ("alpha", 1.0, 0.0)),
    )


def _network(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    from easel.match.estimators import after_columns, standardised

    body = (MLPClassifier if shape.classify else MLPRegressor)(
        hidden_layer_sizes=(int(candidate.number("hidden", 128)),),
        learning_rate_init=candidate.number("lr", 1e-3),
        alpha=candidate.number("alpha", 1e-4 if shape.classify else 1e-2),
        max_iter=200,
        early_stopping=False,
        random_state=shape.seed,
    )
    return after_columns(body if shape.classify else standardised(body), shape, candidate.text("norm", ""))


def _averaged_plan(situation: Situation) -> Plan:
    return Plan(0.6, (("alpha", 1e-4),), (("alpha", 1e-3, 0.01),))


def _averaged(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    from easel.match.estimators import after_columns, for_each_output, standardised

    alpha = candidate.number("alpha", 1e-4)
    if shape.classify:
        body = SGDClassifier(loss="perceptron", average=True, alpha=alpha, random_state=shape.seed)
    else:
        body = for_each_output(
            standardised(SGDRegressor(average=True, alpha=alpha, random_state=shape.seed)), shape
        )
    return after_columns(body, shape, candidate.text("norm", ""))


FAMILIES = (
    EstimatorFamily(
        name="neural_network",
        fits=fits(TemplateKind.TABLE) | fits(TemplateKind.MULTI_OUTPUT, tasks=(Task.REGRESS,)),
        plan=_network_plan,
        cost=table_cost(lambda c, s, cells: 2e-6 * s.examples * epochs_for(60, s.examples) * (cells + 128)),
        estimator=_network,
    ),
    EstimatorFamily(
        name="averaged_perceptron",
        fits=fits(TemplateKind.TABLE),
        plan=_averaged_plan,
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        estimator=_averaged,
    ),
)

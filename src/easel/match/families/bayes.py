"""Naive Bayes for classes, Bayesian ridge regression for numbers: the paper's Bayes point machine."""

from __future__ import annotations

from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, MatrixShape, Plan, fits, table_cost
from easel.match.kinds import TemplateKind


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.linear_model import BayesianRidge
    from sklearn.naive_bayes import GaussianNB

    from easel.match.estimators import after_columns, for_each_output

    body = GaussianNB() if shape.classify else for_each_output(BayesianRidge(), shape)
    return after_columns(body, shape, candidate.text("norm", ""))


FAMILIES = (
    EstimatorFamily(
        name="bayes_point",
        fits=fits(TemplateKind.TABLE),
        plan=lambda situation: Plan(0.62),
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        estimator=_estimator,
    ),
)

"""Support vector machines with a Gaussian kernel."""

from __future__ import annotations

from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import TemplateKind


def _plan(situation: Situation) -> Plan:
    return Plan(
        0.84 if situation.few else 0.8,
        (("C", 3.0),),
        (("C", 0.5, 0.01), ("C", 20.0, 0.01), ("gamma", "fine", 0.05)),
    )


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.svm import SVC, SVR

    from easel.match.estimators import after_columns, for_each_output, standardised

    gamma = "auto" if candidate.text("gamma", "scale") == "fine" else candidate.text("gamma", "scale")
    strength = candidate.number("C", 3.0)
    if shape.classify:
        body = SVC(C=strength, gamma=gamma, random_state=shape.seed)
    else:
        body = for_each_output(standardised(SVR(C=strength, gamma=gamma)), shape)
    return after_columns(body, shape, candidate.text("norm", ""))


FAMILIES = (
    EstimatorFamily(
        name="svm",
        fits=fits(TemplateKind.TABLE),
        plan=_plan,
        cost=table_cost(
            lambda c, s, cells: 2e-10 * s.examples**2 * cells * (s.classes or 2) ** 0.5 + 2e-5 * s.examples
        ),
        estimator=_estimator,
        flat=True,
        power=2.0,
    ),
)

"""QUANT: quantiles of intervals of a series, and extremely randomised trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.examples import Object
from easel.match.family import EstimatorFamily, MatrixShape, Plan, Situation, fits, fits_of
from easel.match.kinds import TemplateKind
from easel.match.summary import DataSummary


def _encode(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> Any:
    from easel.match.encode.quant import fit_quant

    return fit_quant(program.input, inputs, candidate.text("norm", "standard"))


def _own_encoder() -> type:
    from easel.match.encode.quant import QuantEncoder

    return QuantEncoder


def _plan(situation: Situation) -> Plan:
    return Plan(0.9, (("trees", 200),), situation.scales)


def _cost(candidate: Candidate, summary: DataSummary) -> float:
    n = summary.examples
    one = n * (2e-5 * summary.steps + 4e-3) * candidate.number("trees", 200) / 200
    return 0.5 + fits_of(n) * one


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    settings = {
        "n_estimators": int(candidate.number("trees", 200)),
        "max_features": 0.1,
        "random_state": shape.seed,
    }
    if shape.classify:
        return ExtraTreesClassifier(criterion="entropy", **settings)
    return ExtraTreesRegressor(**settings)


FAMILIES = (
    EstimatorFamily(
        name="quant",
        fits=fits(TemplateKind.SERIES),
        plan=_plan,
        cost=_cost,
        encode=_encode,
        own_encoder=_own_encoder,
        estimator=_estimator,
    ),
)

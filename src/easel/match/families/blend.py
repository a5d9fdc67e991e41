"""The mean of three regressors that err in different ways: where data are few, better than whichever validates best."""

from __future__ import annotations

from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, MatrixShape, Plan, fits, table_cost
from easel.match.kinds import Task, TemplateKind

_MEMBERS = (
    Candidate("linear", (("C", 10.0),)),
    Candidate("svm", (("C", 0.5),)),
    Candidate("extra_trees", (("trees", 200), ("leaf", 3))),
)


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.ensemble import VotingRegressor

    from easel.match.registry import estimator_family

    return VotingRegressor([(one.family, estimator_family(one).estimator(one, shape)) for one in _MEMBERS])


FAMILIES = (
    EstimatorFamily(
        name="blend",
        fits=fits(TemplateKind.TABLE, tasks=(Task.REGRESS,)),
        plan=lambda situation: Plan(0.83),
        cost=table_cost(
            lambda c, s, cells: (
                0.3 + 4e-10 * s.examples**2 * cells + 2e-5 * s.examples + 4e-5 * s.examples * cells**0.5
            )
        ),
        estimator=_estimator,
    ),
)

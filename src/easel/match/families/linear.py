"""Logistic regression, and ridge regression under the name of linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import Task, TemplateKind

MOST_STEPS, AT_ONCE = 400, 40
"""Steps of the solver at most; after so many of them it is asked whether to stop."""


def _plan(situation: Situation) -> Plan:
    return Plan(
        0.82 if situation.few else 0.72,
        (("C", 1.0),),
        (("C", 0.1, 0.01), ("C", 10.0, 0.03), ("C", 0.01, 0.03)),
    )


def _logistic(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.linear_model import LogisticRegression

    from easel.match.estimators import after_columns

    return after_columns(
        LogisticRegression(C=candidate.number("C", 1.0), max_iter=MOST_STEPS),
        shape,
        candidate.text("norm", ""),
    )


def _in_parts(estimator: Any, x: Any, y: Any, stop: Callable[[], bool]) -> bool:
    model, shown = estimator.named_steps["model"], estimator.named_steps["columns"].fit_transform(x)
    taken = 0
    while taken < MOST_STEPS:
        model.set_params(warm_start=True, max_iter=AT_ONCE).fit(shown, y)
        taken += AT_ONCE
        if int(model.n_iter_.max()) < AT_ONCE:
            break
        if taken < MOST_STEPS and stop():
            return False
    return True


def _ridge(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.linear_model import Ridge

    from easel.match.estimators import after_columns

    return after_columns(Ridge(alpha=10.0 / candidate.number("C", 1.0)), shape, candidate.text("norm", ""))


def _contributions(model: Any, x: Any, background: Any) -> Any:
    """Returns the exact values: after columns are scaled or spread, the answer is a sum over columns."""
    from easel.match.contributions import additive

    return additive(getattr(model, "decision_function", model.predict), x, background)


FAMILIES = (
    EstimatorFamily(
        name="logistic_regression",
        fits=fits(TemplateKind.TABLE, tasks=(Task.CLASSIFY,)),
        plan=_plan,
        cost=table_cost(lambda c, s, cells: 8e-8 * s.examples * cells * max(1, s.classes)),
        estimator=_logistic,
        fit_in_parts=_in_parts,
        contributions=_contributions,
        flat=True,
    ),
    EstimatorFamily(
        name="linear",
        fits=fits(TemplateKind.TABLE, TemplateKind.MULTI_OUTPUT, tasks=(Task.REGRESS,)),
        plan=_plan,
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        estimator=_ridge,
        contributions=_contributions,
    ),
)

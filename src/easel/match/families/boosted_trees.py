"""Gradient boosting by scikit-learn, on histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, Growth, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import TemplateKind

ROUNDS, AT_ONCE = 100, 10


def _plan(situation: Situation) -> Plan:
    return Plan(0.82, (("lr", 0.1),), (("lr", 0.03, 0.01), ("depth", 3, 0.02)))


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    from easel.match.estimators import for_each_output

    kind = HistGradientBoostingClassifier if shape.classify else HistGradientBoostingRegressor
    body = kind(
        learning_rate=candidate.number("lr", 0.1),
        max_depth=int(candidate.number("depth", 0)) or None,
        max_iter=ROUNDS,
        min_samples_leaf=5,
        random_state=shape.seed,
    )
    return body if shape.classify else for_each_output(body, shape)


def _grow(estimator: Any, before: Any, x: Any, y: Any, to: int, stop: Callable[[], bool]) -> Any:
    model = estimator if before is None else before
    so_far = 0 if before is None else int(before.n_iter_)
    while so_far < to:
        so_far = min(so_far + AT_ONCE, to)
        model.set_params(warm_start=True, max_iter=so_far).fit(x, y)
        if model.n_iter_ < so_far or stop():
            break  # it stops by itself where nothing gets better
    return model


FAMILIES = (
    EstimatorFamily(
        name="boosted_trees",
        fits=fits(TemplateKind.TABLE),
        plan=_plan,
        cost=table_cost(lambda c, s, cells: (0.5 + 3e-6 * s.examples * cells) * max(1, s.classes)),
        estimator=_estimator,
        growth=Growth(lambda candidate: ROUNDS, _grow, lambda model: int(model.n_iter_)),
    ),
)

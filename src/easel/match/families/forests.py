"""Random forests and extremely randomised trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, Growth, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import Task, TemplateKind

AT_ONCE = 10
"""So many trees are added before it is asked whether to stop."""
_FITS = fits(TemplateKind.TABLE) | fits(TemplateKind.MULTI_OUTPUT, tasks=(Task.REGRESS,))


def _plan(promise: float) -> Any:
    def plan(situation: Situation) -> Plan:
        return Plan(promise, (("trees", 300),), (("leaf", 3, 0.01), ("features", "half", 0.02)))

    return plan


def _forest(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return _grown(RandomForestClassifier if shape.classify else RandomForestRegressor, candidate, shape)


def _extra(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    return _grown(ExtraTreesClassifier if shape.classify else ExtraTreesRegressor, candidate, shape)


def _grown(kind: Any, candidate: Candidate, shape: MatrixShape) -> Any:
    from easel.match.estimators import after_filling

    share: str | float = 0.5
    if shape.classify:
        word = candidate.text("features", "sqrt")
        share = 0.5 if word == "half" else word
    return after_filling(
        kind(
            int(candidate.number("trees", 300)),
            min_samples_leaf=int(candidate.number("leaf", 1 if shape.classify else 2)),
            max_features=share,
            random_state=shape.seed,
        ),
        shape,
    )


def _rounds(candidate: Candidate) -> int:
    return int(candidate.number("trees", 300))


def _grow(estimator: Any, before: Any, x: Any, y: Any, to: int, stop: Callable[[], bool]) -> Any:
    """Adds trees a few at a time: the forest is the same as if all had been grown at once."""
    model = estimator if before is None else before
    forest = model.named_steps["model"]
    filled = model.named_steps["columns"].fit_transform(x)
    so_far = 0 if before is None else _grown_trees(model)
    while so_far < to:
        so_far = min(so_far + AT_ONCE, to)
        forest.set_params(warm_start=True, n_estimators=so_far).fit(filled, y)
        if stop():
            break
    return model


def _grown_trees(model: Any) -> int:
    """Returns how many trees a forest has."""
    return len(model.named_steps["model"].estimators_)


_GROWTH = Growth(_rounds, _grow, _grown_trees, several=True, dear=True)

FAMILIES = (
    EstimatorFamily(
        name="random_forest",
        fits=_FITS,
        plan=_plan(0.8),
        cost=table_cost(lambda c, s, cells: 0.5 + 8e-5 * s.examples * cells**0.5),
        estimator=_forest,
        growth=_GROWTH,
    ),
    EstimatorFamily(
        name="extra_trees",
        fits=_FITS,
        plan=_plan(0.82),
        cost=table_cost(lambda c, s, cells: 0.35 + 5e-5 * s.examples * cells**0.5),
        estimator=_extra,
        growth=_GROWTH,
        flat=True,
    ),
)

"""Gradient boosting by LightGBM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, Growth, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import TemplateKind


def _plan(situation: Situation) -> Plan:
    return Plan(
        0.85,
        (("lr", 0.1), ("leaves", 31)),
        (("lr", 0.03, 0.0), ("leaves", 7, 0.01), ("leaves", 95, 0.03)),
    )


def _estimator(candidate: Candidate, shape: MatrixShape) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    from easel.match.estimators import for_each_output

    rate = candidate.number("lr", 0.1)
    settings: dict[str, Any] = {
        "n_estimators": _rounds(candidate),
        "learning_rate": rate,
        "num_leaves": int(candidate.number("leaves", 31)),
        "min_child_samples": 10,
        "subsample": 0.9,
        "subsample_freq": 1,
        "colsample_bytree": 0.8,
        "random_state": shape.seed,
        "n_jobs": 1,
        "verbose": -1,
        "deterministic": True,
        "force_row_wise": True,
    }
    if shape.classify:
        return LGBMClassifier(**settings)
    return for_each_output(LGBMRegressor(**settings), shape)


def _rounds(candidate: Candidate) -> int:
    return int(min(600, 12 / candidate.number("lr", 0.1)))


def _grow(estimator: Any, before: Any, x: Any, y: Any, to: int, stop: Callable[[], bool]) -> Any:
    """Adds rounds, which draw other rows and columns than the first did."""
    from lightgbm.callback import EarlyStopException

    so_far = 0 if before is None else _grown(before)

    def ask(state: Any) -> None:
        if stop():
            raise EarlyStopException(state.iteration, state.evaluation_result_list or [])

    estimator.set_params(n_estimators=to - so_far, random_state=estimator.random_state + so_far)
    return estimator.fit(x, y, init_model=None if before is None else before.booster_, callbacks=[ask])


def _grown(model: Any) -> int:
    return int(model.booster_.current_iteration())


def _contributions(model: Any, x: Any, background: Any) -> Any:
    """Returns the exact values of TreeSHAP (Lundberg et al. 2018), which LightGBM computes itself."""
    import numpy as np

    models = getattr(model, "estimators_", [model])
    found = [np.asarray(one.booster_.predict(x, pred_contrib=True)) for one in models]
    # for each output the columns and, last, the mean answer
    parts = [one.reshape(len(x), -1, x.shape[1] + 1)[:, :, :-1].transpose(0, 2, 1) for one in found]
    return np.concatenate(parts, axis=2)


FAMILIES = (
    EstimatorFamily(
        name="lightgbm",
        fits=fits(TemplateKind.TABLE),
        plan=_plan,
        cost=table_cost(lambda c, s, cells: (0.3 + 1e-6 * s.examples * cells) * max(1, s.classes)),
        estimator=_estimator,
        growth=Growth(_rounds, _grow, _grown),
        contributions=_contributions,
        needs="lightgbm",
    ),
)

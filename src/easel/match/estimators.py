"""What scikit-learn pipelines of table families are made of, and the probabilities that they give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

from easel.match.family import MatrixShape

FEWEST_KEPT, MOST_KEPT, MOST_SPREAD = 4, 64, 8_000
"""Of a category so many values get a column of their own at least and at most; of all together about so many."""


def after_filling(body: BaseEstimator, shape: MatrixShape) -> BaseEstimator:
    """Returns the steps for trees: gaps filled, nothing scaled.

    Numbers alone need no sorting of columns, which takes longer than the model where one object is asked about.
    """
    numbers, categories = _places(shape)
    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    columns = ColumnTransformer([("all", fill, numbers + categories)]) if categories else fill
    return Pipeline([("columns", columns), ("model", body)])


def after_columns(body: BaseEstimator, shape: MatrixShape, norm: str = "") -> BaseEstimator:
    """Returns the steps for what measures distances: gaps filled, numbers scaled, categories spread."""
    numbers, categories = _places(shape)
    scale = PowerTransformer() if norm == "power" else StandardScaler()
    filled = Pipeline(
        [("fill", SimpleImputer(strategy="median", keep_empty_features=True)), ("scale", scale)]
    )
    if not categories:
        return Pipeline([("columns", filled), ("model", body)])
    kept = min(MOST_KEPT, max(FEWEST_KEPT, MOST_SPREAD // len(categories)))
    named = Pipeline(
        [
            ("fill", SimpleImputer(strategy="constant", fill_value=-1, keep_empty_features=True)),
            ("one_hot", OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=kept)),
        ]
    )
    parts = [("numbers", filled, numbers), ("categories", named, categories)]
    columns = ColumnTransformer([part for part in parts if part[2]])
    return Pipeline([("columns", columns), ("model", body)])


def _places(shape: MatrixShape) -> tuple[list[int], list[int]]:
    mask = np.asarray(shape.categorical, dtype=bool)
    return np.flatnonzero(~mask).tolist(), np.flatnonzero(mask).tolist()


def standardised(regressor: BaseEstimator) -> BaseEstimator:
    """Learns on targets of unit deviation and answers in the user's own unit."""
    return TransformedTargetRegressor(regressor, transformer=StandardScaler())


def for_each_output(regressor: BaseEstimator, shape: MatrixShape) -> BaseEstimator:
    """One for each number to predict, for a regressor that knows only one."""
    return MultiOutputRegressor(regressor) if shape.outputs > 1 else regressor


def probabilities(estimator: Any, x: Any, classes: int) -> NDArray[np.float64]:
    """`(n, classes)`: the estimator's own, or a softmax of its decision values; unseen classes get 0."""
    if hasattr(estimator, "predict_proba"):
        own = np.asarray(estimator.predict_proba(x), dtype=np.float64)
    else:
        decision = np.asarray(estimator.decision_function(x), dtype=np.float64)
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1)
        own = np.exp(decision - decision.max(axis=1, keepdims=True))
        own /= own.sum(axis=1, keepdims=True)
    full = np.zeros((len(own), classes))
    full[:, np.asarray(estimator.classes_, dtype=int)] = own
    return full

"""scikit-learn and LightGBM models: candidate → an estimator ready to fit on a matrix or on texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from easel.match.candidate import Candidate

TREES = ("random_forest", "extra_trees", "lightgbm", "boosted_trees")


def build_estimator(
    candidate: Candidate, categorical: Sequence[bool], *, classify: bool, outputs: int, seed: int
) -> BaseEstimator:
    """The pipeline of a table family; `categorical` marks the columns that hold category numbers."""
    if candidate.family == "blend":
        return _blend(categorical, outputs, seed)
    body = (_classifier if classify else _regressor)(candidate, seed)
    if (
        not classify
        and outputs > 1
        and candidate.family in ("svm", "lightgbm", "boosted_trees", "averaged_perceptron", "bayes_point")
    ):
        body = MultiOutputRegressor(body)
    if candidate.family in ("lightgbm", "boosted_trees"):
        return body
    return Pipeline([("columns", _columns(candidate, categorical)), ("model", body)])


def _blend(categorical: Sequence[bool], outputs: int, seed: int) -> BaseEstimator:
    """The mean of three that err in different ways: where data are few, better than whichever validates best."""
    members = [
        Candidate("linear", (("C", 10.0),)),
        Candidate("svm", (("C", 0.5),)),
        Candidate("extra_trees", (("trees", 200), ("leaf", 3))),
    ]
    made = [
        (one.family, build_estimator(one, categorical, classify=False, outputs=outputs, seed=seed))
        for one in members
    ]
    return VotingRegressor(made)


def build_text_estimator(candidate: Candidate, *, classify: bool, seed: int) -> BaseEstimator:
    """TF-IDF over words (and pairs of them) and a linear model."""
    words = TfidfVectorizer(
        ngram_range=(1, int(candidate.number("grams", 2))), sublinear_tf=True, min_df=1, max_features=50_000
    )
    if candidate.family == "text_bayes":
        return make_pipeline(words, ComplementNB(alpha=candidate.number("alpha", 0.3)))
    strength = candidate.number("C", 3.0)
    if not classify:
        return make_pipeline(words, Ridge(alpha=1.0 / strength))
    return make_pipeline(words, LogisticRegression(C=strength, max_iter=500))


def _columns(candidate: Candidate, categorical: Sequence[bool]) -> BaseEstimator:
    """Gaps filled, numbers scaled, categories spread. Numbers alone need no sorting of columns, which takes longer
    than the model where one object is asked about.
    """
    mask = np.asarray(categorical, dtype=bool)
    numbers, categories = np.flatnonzero(~mask).tolist(), np.flatnonzero(mask).tolist()
    if candidate.family in TREES:
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        return ColumnTransformer([("all", fill, numbers + categories)]) if categories else fill
    scale = PowerTransformer() if candidate.text("norm", "") == "power" else StandardScaler()
    filled = Pipeline(
        [("fill", SimpleImputer(strategy="median", keep_empty_features=True)), ("scale", scale)]
    )
    if not categories:
        return filled
    named = Pipeline(
        [
            ("fill", SimpleImputer(strategy="constant", fill_value=-1, keep_empty_features=True)),
            ("one_hot", OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=64)),
        ]
    )
    parts = [("numbers", filled, numbers), ("categories", named, categories)]
    return ColumnTransformer([part for part in parts if part[2]])


def _classifier(candidate: Candidate, seed: int) -> BaseEstimator:
    number, text = candidate.number, candidate.text
    match candidate.family:
        case "logistic_regression":
            return LogisticRegression(C=number("C", 1.0), max_iter=400)
        case "svm":
            return SVC(C=number("C", 3.0), gamma=_gamma(text("gamma", "scale")), random_state=seed)
        case "linear_svm" | "tree_kernel_svm":
            return LinearSVC(C=number("C", 1.0), random_state=seed)
        case "random_forest":
            return RandomForestClassifier(
                int(number("trees", 300)),
                min_samples_leaf=int(number("leaf", 1)),
                max_features=_share(text("features", "sqrt")),
                random_state=seed,
            )
        case "extra_trees":
            return ExtraTreesClassifier(
                int(number("trees", 300)),
                min_samples_leaf=int(number("leaf", 1)),
                max_features=_share(text("features", "sqrt")),
                random_state=seed,
            )
        case "lightgbm":
            from lightgbm import LGBMClassifier

            return LGBMClassifier(**_lightgbm(candidate, seed))
        case "boosted_trees":
            return HistGradientBoostingClassifier(
                learning_rate=number("lr", 0.1),
                max_depth=int(number("depth", 0)) or None,
                min_samples_leaf=5,
                random_state=seed,
            )
        case "neural_network":
            return MLPClassifier(
                hidden_layer_sizes=(int(number("hidden", 128)),),
                learning_rate_init=number("lr", 1e-3),
                alpha=number("alpha", 1e-4),
                max_iter=200,
                early_stopping=False,
                random_state=seed,
            )
        case "bayes_point":
            return GaussianNB()
        case "averaged_perceptron":
            return SGDClassifier(
                loss="perceptron", average=True, alpha=number("alpha", 1e-4), random_state=seed
            )
    raise KeyError(candidate.family)


def _regressor(candidate: Candidate, seed: int) -> BaseEstimator:
    number, text = candidate.number, candidate.text
    match candidate.family:
        case "linear":
            return Ridge(alpha=10.0 / number("C", 1.0))
        case "svm":
            return _standardised(SVR(C=number("C", 3.0), gamma=_gamma(text("gamma", "scale"))))
        case "random_forest":
            return RandomForestRegressor(
                int(number("trees", 300)),
                min_samples_leaf=int(number("leaf", 2)),
                max_features=0.5,
                random_state=seed,
            )
        case "extra_trees":
            return ExtraTreesRegressor(
                int(number("trees", 300)),
                min_samples_leaf=int(number("leaf", 2)),
                max_features=0.5,
                random_state=seed,
            )
        case "lightgbm":
            from lightgbm import LGBMRegressor

            return LGBMRegressor(**_lightgbm(candidate, seed))
        case "boosted_trees":
            return HistGradientBoostingRegressor(
                learning_rate=number("lr", 0.1),
                max_depth=int(number("depth", 0)) or None,
                min_samples_leaf=5,
                random_state=seed,
            )
        case "neural_network":
            return _standardised(
                MLPRegressor(
                    hidden_layer_sizes=(int(number("hidden", 128)),),
                    learning_rate_init=number("lr", 1e-3),
                    alpha=number("alpha", 1e-2),
                    max_iter=200,
                    early_stopping=False,
                    random_state=seed,
                )
            )
        case "bayes_point":
            return BayesianRidge()
        case "averaged_perceptron":
            return _standardised(SGDRegressor(average=True, alpha=number("alpha", 1e-4), random_state=seed))
    raise KeyError(candidate.family)


def _standardised(regressor: BaseEstimator) -> BaseEstimator:
    """Learns on targets of unit deviation and answers in the user's own unit."""
    return TransformedTargetRegressor(regressor, transformer=StandardScaler())


def _gamma(word: str) -> str | float:
    return "auto" if word == "fine" else word


def _share(word: str) -> str | float:
    return 0.5 if word == "half" else word


def _lightgbm(candidate: Candidate, seed: int) -> dict[str, Any]:
    rate = candidate.number("lr", 0.1)
    return {
        "n_estimators": int(min(600, 12 / rate)),
        "learning_rate": rate,
        "num_leaves": int(candidate.number("leaves", 31)),
        "min_child_samples": 10,
        "subsample": 0.9,
        "subsample_freq": 1,
        "colsample_bytree": 0.8,
        "random_state": seed,
        "n_jobs": 1,
        "verbose": -1,
        "deterministic": True,
        "force_row_wise": True,
    }


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

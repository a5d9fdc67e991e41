"""TF-IDF over words (and pairs of them) with a linear model or naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.examples import Object
from easel.match.family import EstimatorFamily, MatrixShape, Plan, Situation, fits, table_cost
from easel.match.kinds import Task, TemplateKind

NO_ONNX = "text models are exported as skops only (--form native): ONNX has no words"


def _as_they_are(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> None:
    """The estimator reads the texts itself."""


def _words(candidate: Candidate) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    grams = (1, int(candidate.number("grams", 2)))
    return TfidfVectorizer(ngram_range=grams, sublinear_tf=True, min_df=1, max_features=50_000)


def _linear_plan(situation: Situation) -> Plan:
    return Plan(0.85, (("C", 3.0),), (("C", 30.0, 0.01), ("C", 0.3, 0.03), ("grams", 1, 0.02)))


def _linear(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    strength = candidate.number("C", 3.0)
    body = LogisticRegression(C=strength, max_iter=500) if shape.classify else Ridge(alpha=1.0 / strength)
    return make_pipeline(_words(candidate), body)


def _bayes_plan(situation: Situation) -> Plan:
    return Plan(0.78, (("alpha", 0.3),), (("alpha", 1.0, 0.02),))


def _bayes(candidate: Candidate, shape: MatrixShape) -> Any:
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline

    return make_pipeline(_words(candidate), ComplementNB(alpha=candidate.number("alpha", 0.3)))


FAMILIES = (
    EstimatorFamily(
        name="text_linear",
        fits=fits(TemplateKind.TEXT),
        plan=_linear_plan,
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        encode=_as_they_are,
        estimator=_linear,
        no_onnx=NO_ONNX,
    ),
    EstimatorFamily(
        name="text_bayes",
        fits=fits(TemplateKind.TEXT, tasks=(Task.CLASSIFY,)),
        plan=_bayes_plan,
        cost=table_cost(lambda c, s, cells: 1e-6 * s.examples * cells),
        encode=_as_they_are,
        estimator=_bayes,
        no_onnx=NO_ONNX,
    ),
)

"""Trials of scikit-learn and LightGBM families: validate on each round, then fit once more on everything."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.encode.images import fit_pictures, looks_at
from easel.match.encode.series import fit_series
from easel.match.encode.subtrees import fit_subtrees
from easel.match.encode.tables import TableEncoder, fit_table
from easel.match.estimator_body import EstimatorBody, matrix, predict_matrix
from easel.match.estimators import build_estimator, build_text_estimator
from easel.match.examples import Example, Object
from easel.match.model import Model
from easel.match.split import Round
from easel.match.targets import Classes
from easel.match.templates import match_program
from easel.match.train import Conditions, Learned


def train_estimator(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    plan: Sequence[Round],
    target: Any,
    conditions: Conditions,
) -> Learned:
    inputs = [example.input for example in examples]
    truth = target([example.output for example in examples])
    began = conditions.clock()
    predicted = []
    for number, one in enumerate(plan):
        source = _fit_source(candidate, program, [inputs[i] for i in one.train])
        estimator = _fit(
            candidate, source, [inputs[i] for i in one.train], truth[one.train], target, conditions.seed
        )
        predicted.append(predict_matrix(estimator, matrix(source, [inputs[i] for i in one.validate]), target))
        conditions.progress((number + 1) / (len(plan) + 1))
        if number == 0 and (conditions.clock() - began) * (len(plan) + 1) > 3 * conditions.budget_s:
            break
    done = plan[: len(predicted)]
    source = _fit_source(candidate, program, inputs)
    final = _fit(candidate, source, inputs, truth, target, conditions.seed)
    conditions.progress(1.0)
    body = EstimatorBody(final, source, target)
    validated = np.concatenate([one.validate for one in done])
    stopped = "finished" if len(done) == len(plan) else "out of time"
    return Learned(
        truth[validated],
        np.concatenate(predicted),
        Model(program, candidate, source, target, body),
        stopped,
        validated,
    )


def _fit_source(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> Any:
    """The encoder that makes a matrix of these inputs; None where the estimator reads text itself."""
    kind = match_program(program).name.split()[0]
    norm = candidate.text("norm", "standard")
    if candidate.family.startswith("text_"):
        return None
    if candidate.family == "tree_kernel_svm":
        return fit_subtrees(inputs)
    if kind == "image":
        return fit_pictures(inputs, norm, looks_at(candidate))
    if kind == "time-series":
        return fit_series(program.input, inputs, norm)
    return fit_table(program.input, inputs)


def _fit(
    candidate: Candidate, source: Any, inputs: Sequence[Object], truth: Any, target: Any, seed: int
) -> Any:
    classify = isinstance(target, Classes)
    x = matrix(source, inputs)
    y = truth if classify or truth.shape[1] > 1 else truth[:, 0]
    if source is None:
        estimator = build_text_estimator(candidate, classify=classify, seed=seed)
    else:
        categorical = source.categorical if isinstance(source, TableEncoder) else (False,) * x.shape[1]
        outputs = 1 if classify else truth.shape[1]
        estimator = build_estimator(candidate, categorical, classify=classify, outputs=outputs, seed=seed)
    with warnings.catch_warnings():
        # A model that did not quite converge is still a model: its validation score says how good it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(x, y)

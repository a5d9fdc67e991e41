"""Trials of scikit-learn and LightGBM families: validate on each round, then fit once more on everything."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.encode.tables import TableEncoder
from easel.match.encoders import fit_source
from easel.match.estimator_body import EstimatorBody, matrix, predict_matrix
from easel.match.examples import Example, Object
from easel.match.family import MatrixShape
from easel.match.kinds import SLICE_ENDED
from easel.match.model import Model
from easel.match.registry import estimator_family
from easel.match.split import Round
from easel.match.targets import Classes
from easel.match.train import Conditions, Learned

LEAST_EXAMPLES = 40
"""A slice trains on no fewer: with a handful the classes would not all be there."""


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
    plan = [_part(one, conditions) for one in plan]
    for number, one in enumerate(plan):
        source = fit_source(candidate, program, [inputs[i] for i in one.train])
        estimator = _fit(
            candidate, source, [inputs[i] for i in one.train], truth[one.train], target, conditions.seed
        )
        predicted.append(predict_matrix(estimator, matrix(source, [inputs[i] for i in one.validate]), target))
        conditions.progress((number + 1) / (len(plan) + 1))
        if number == 0 and (conditions.clock() - began) * (len(plan) + 1) > 3 * conditions.budget_s:
            break
    done = plan[: len(predicted)]
    # the model of a slice has seen no more than the slice: it must not cost what the whole trial would
    kept = np.arange(len(inputs))
    if conditions.until is not None and conditions.until < 1.0:
        kept = np.sort(plan[0].train)
    shown = [inputs[i] for i in kept]
    source = fit_source(candidate, program, shown)
    final = _fit(candidate, source, shown, truth[kept], target, conditions.seed)
    conditions.progress(1.0)
    body = EstimatorBody(candidate, final, source, target)
    validated = np.concatenate([one.validate for one in done])
    stopped = "finished" if len(done) == len(plan) else "out of time"
    if stopped == "finished" and conditions.until is not None and conditions.until < 1.0:
        stopped = SLICE_ENDED
    return Learned(
        truth[validated],
        np.concatenate(predicted),
        Model(program, candidate, source, target, body),
        stopped,
        validated,
    )


def _part(one: Round, conditions: Conditions) -> Round:
    """The round with a share of its examples to train on; a larger share has those of a smaller one too."""
    if conditions.until is None or conditions.until >= 1.0:
        return one
    order = np.random.default_rng(conditions.seed).permutation(len(one.train))
    count = min(len(order), max(LEAST_EXAMPLES, round(conditions.until * len(order))))
    return replace(one, train=one.train[np.sort(order[:count])])


def _fit(
    candidate: Candidate, source: Any, inputs: Sequence[Object], truth: Any, target: Any, seed: int
) -> Any:
    classify = isinstance(target, Classes)
    x = matrix(source, inputs)
    y = truth if classify or truth.shape[1] > 1 else truth[:, 0]
    categorical: tuple[bool, ...] = ()
    if source is not None:
        categorical = source.categorical if isinstance(source, TableEncoder) else (False,) * x.shape[1]
    shape = MatrixShape(categorical, classify, 1 if classify else truth.shape[1], seed)
    estimator = estimator_family(candidate).estimator(candidate, shape)
    with warnings.catch_warnings():
        # A model that did not quite converge is still a model: its validation score says how good it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(x, y)

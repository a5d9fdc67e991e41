"""Trials of scikit-learn and LightGBM families: validate on each round, then fit once more on everything."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from easel.match.candidate import Candidate
from easel.match.encoders import fit_source
from easel.match.estimator_body import EstimatorBody, matrix, predict_matrix
from easel.match.examples import Object
from easel.match.kinds import GAVE_WAY, OUT_OF_TIME, SLICE_ENDED
from easel.match.model import Model
from easel.match.registry import estimator_family
from easel.match.split import part_of
from easel.match.targets import Classes
from easel.match.train import Conditions, Learned, Prepared
from easel.match.train_trees import NEARLY, can_grow, problem, train_trees


def train_estimator(prepared: Prepared) -> Learned:
    candidate, program, conditions = prepared.candidate, prepared.program, prepared.conditions
    target, plan = prepared.target, prepared.plan
    inputs = [example.input for example in prepared.examples]
    truth = target([example.output for example in prepared.examples])
    labels = truth if isinstance(target, Classes) else None
    told_apart = labels is None or all(len(np.unique(labels[one.train])) > 1 for one in plan)
    if told_apart and can_grow(candidate, outputs=1 if labels is not None else truth.shape[1]):
        return train_trees(candidate, program, inputs, truth, plan, target, conditions)
    began = conditions.clock()
    predicted, models = [], []
    plan = [part_of(one, conditions.part, conditions.seed, labels) for one in plan]
    asks = _Asks(conditions, began)
    for number, one in enumerate(plan):
        if one.turn > plan[number - 1].turn and conditions.clock() - began > conditions.budget_s / 3:
            plan = plan[:number]
            break
        source = fit_source(candidate, program, [inputs[i] for i in one.train])
        shown = [inputs[i] for i in one.train]
        estimator = _fit(candidate, source, shown, truth[one.train], target, conditions.seed, asks)
        predicted.append(predict_matrix(estimator, matrix(source, [inputs[i] for i in one.validate]), target))
        models.append((estimator, source))
        conditions.progress((number + 1) / (len(plan) + 1))
        if number == 0 and (conditions.clock() - began) * (len(plan) + 1) > 3 * conditions.budget_s:
            break
    done = plan[: len(predicted)]
    is_slice = conditions.until is not None and conditions.until < 1.0
    late = conditions.clock() - began > conditions.budget_s or len(done) < len(plan)
    if is_slice or late or asks.give_way():
        # the first round's own model costs nothing more; it is too late, or too soon, for one of all examples
        final, source = models[0]
    else:
        source = fit_source(candidate, program, inputs)
        final = _fit(candidate, source, inputs, truth, target, conditions.seed, asks)
    conditions.progress(1.0)
    body = EstimatorBody(candidate, final, source, target)
    validated = np.concatenate([one.validate for one in done])
    reached = 1.0 if conditions.until is None else conditions.until
    stopped = OUT_OF_TIME if late and not is_slice else SLICE_ENDED if is_slice else "finished"
    if asks.given_way:
        stopped = GAVE_WAY
        if asks.cut_short:
            reached *= NEARLY  # it may be had whole another time
    return Learned(
        truth[validated],
        np.concatenate(predicted),
        Model(program, candidate, source, target, body),
        stopped,
        validated,
        reached=reached,
    )


class _Asks:
    """What a fit in parts asks after each of them, and what came of it for the trial."""

    def __init__(self, conditions: Conditions, began: float) -> None:
        self._conditions, self._ends = conditions, began + conditions.budget_s
        self.given_way = self.cut_short = False

    def give_way(self) -> bool:
        self.given_way = self.given_way or self._conditions.give_way()
        return self.given_way

    def stop(self) -> bool:
        return self.give_way() or self._conditions.clock() > self._ends


def _fit(
    candidate: Candidate,
    source: Any,
    inputs: Sequence[Object],
    truth: Any,
    target: Any,
    seed: int,
    asks: _Asks,
) -> Any:
    shown = problem(candidate, source, inputs, truth, target, seed)
    if isinstance(target, Classes) and len(np.unique(truth)) == 1:
        # Examples of one class teach that class: such a round or slice scores what always saying it does.
        return DummyClassifier(strategy="most_frequent").fit(np.zeros((len(shown.y), 1)), shown.y)
    in_parts = estimator_family(candidate).fit_in_parts
    with warnings.catch_warnings():
        # A model that did not quite converge is still a model: its validation score says how good it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if in_parts is None:
            return shown.estimator.fit(shown.x, shown.y)
        if not in_parts(shown.estimator, shown.x, shown.y, asks.stop):
            asks.cut_short = True
        return shown.estimator

"""Trials of forests and boosted trees by rounds: stopped after any of them, kept, and gone on with."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.encode.tables import TableEncoder
from easel.match.encoders import fit_source
from easel.match.estimator_body import SKOPS, EstimatorBody, matrix, predict_matrix
from easel.match.examples import Object
from easel.match.family import EstimatorFamily, Growth, MatrixShape
from easel.match.kinds import GAVE_WAY, OUT_OF_TIME, SLICE_ENDED
from easel.match.model import Model
from easel.match.registry import estimator_family, family_of
from easel.match.split import Round
from easel.match.targets import Classes
from easel.match.train import Conditions, Learned

log = logging.getLogger("easel.match")
NEARLY = 0.99
"""How far a trial is whose rounds are all validated, while the model of all examples still grows."""


@dataclass(frozen=True)
class TreeProblem:
    """A fresh estimator and what it learns from."""

    estimator: Any
    x: Any
    y: Any


def problem(
    candidate: Candidate, source: Any, inputs: Sequence[Object], truth: Any, target: Any, seed: int
) -> TreeProblem:
    """The candidate's estimator, with the matrix and the targets that it is fitted to."""
    classify = isinstance(target, Classes)
    x = matrix(source, inputs)
    y = truth if classify or truth.shape[1] > 1 else truth[:, 0]
    categorical: tuple[bool, ...] = ()
    if source is not None:
        categorical = source.categorical if isinstance(source, TableEncoder) else (False,) * x.shape[1]
    shape = MatrixShape(categorical, classify, 1 if classify else truth.shape[1], seed)
    return TreeProblem(estimator_family(candidate).estimator(candidate, shape), x, y)


def can_grow(candidate: Candidate, outputs: int = 1) -> bool:
    """Whether the candidate's trials go on by rounds of trees."""
    family = family_of(candidate)
    growth = family.growth if isinstance(family, EstimatorFamily) else None
    return growth is not None and (outputs == 1 or growth.several)


def train_trees(
    candidate: Candidate,
    program: Program,
    inputs: Sequence[Object],
    truth: Any,
    plan: Sequence[Round],
    target: Any,
    conditions: Conditions,
) -> Learned:
    """Every round of validation grows to the share that is wanted; at the end of the trial a model of all examples.

    Until then the first round's own model serves: it has cost nothing more.
    """
    growth = estimator_family(candidate).growth
    assert growth is not None
    until = 1.0 if conditions.until is None else conditions.until
    wanted = max(1, round(until * growth.rounds(candidate)))
    began = conditions.clock()
    once = sum(one.turn == 0 for one in plan)
    parts = once + (1 if until >= 1.0 else 0)
    predicted, models = [], []
    begun: list[_Trees] = []
    stopped, reached, resumed = SLICE_ENDED if until < 1.0 else "finished", until, 0
    for number, one in enumerate(plan):
        if one.turn > plan[number - 1].turn and not _may_repeat(conditions, began, reached):
            plan = plan[:number]
            break
        source = fit_source(candidate, program, [inputs[i] for i in one.train])
        trees = _Trees(
            candidate, growth, conditions, f"trees-{number}", began, min(1.0, (number + 1) / parts)
        )
        shown = [inputs[i] for i in one.train]
        found = trees.grown(
            problem(candidate, source, shown, truth[one.train], target, conditions.seed), wanted
        )
        predicted.append(predict_matrix(found, matrix(source, [inputs[i] for i in one.validate]), target))
        models.append((found, source))
        begun.append(trees)
        resumed += trees.resumed
        if trees.rounds < wanted:
            stopped, reached = trees.stopped, min(reached, trees.rounds / growth.rounds(candidate))
        conditions.progress((number + 1) / (len(plan) + 1))
    final, source = models[0]
    if until >= 1.0 and reached >= 1.0:
        source_of_all = fit_source(candidate, program, inputs)
        trees = _Trees(candidate, growth, conditions, "trees-all", began, 1.0)
        whole = trees.grown(problem(candidate, source_of_all, inputs, truth, target, conditions.seed), wanted)
        begun.append(trees)
        resumed += trees.resumed
        if trees.rounds < wanted:
            stopped, reached = trees.stopped, NEARLY
        else:
            final, source = whole, source_of_all
    if growth.dear and reached < 1.0:
        for each in begun:
            each.keep()
    conditions.progress(1.0)
    validated = np.concatenate([one.validate for one in plan])
    return Learned(
        truth[validated],
        np.concatenate(predicted),
        Model(program, candidate, source, target, EstimatorBody(candidate, final, source, target)),
        stopped,
        validated,
        resumed=resumed,
        reached=reached,
    )


def _may_repeat(conditions: Conditions, began: float, reached: float) -> bool:
    """Whether there is time for another turn of the folds, after which a model of all examples still has to grow."""
    return reached >= 1.0 and conditions.clock() - began < conditions.budget_s / 3


class _Trees:
    """One model that grows, with a checkpoint of its own. It gets a share of the trial's time."""

    def __init__(
        self,
        candidate: Candidate,
        growth: Growth,
        conditions: Conditions,
        name: str,
        began: float,
        share: float,
    ) -> None:
        self._candidate, self._growth, self._conditions = candidate, growth, conditions
        self._ends = began + share * conditions.budget_s
        self._folder = None if conditions.checkpoints is None else conditions.checkpoints / name
        self.rounds = self.resumed = 0
        self.stopped = SLICE_ENDED
        self._newest: Any = None

    def grown(self, asked: TreeProblem, wanted: int) -> Any:
        """The model after `wanted` rounds, or after as many as there was time for: at least one more than before."""
        model = self._kept()
        if self.rounds >= wanted:
            return model
        model = self._growth.grow(clone(asked.estimator), model, asked.x, asked.y, wanted, self._stops)
        self.rounds = self._growth.grown(model)
        if self.rounds < wanted and self.stopped == SLICE_ENDED:
            self.rounds = wanted  # it stopped by itself
        self._newest = model
        if not self._growth.dear:
            self.keep()
        return model

    def _stops(self) -> bool:
        if self._conditions.give_way():
            self.stopped = GAVE_WAY
        elif self._conditions.clock() > self._ends:
            self.stopped = OUT_OF_TIME
        return self.stopped != SLICE_ENDED

    def _kept(self) -> Any:
        if self._folder is None or not (self._folder / "grown.json").exists():
            return None
        files = estimator_family(self._candidate).files or SKOPS
        try:
            told = json.loads((self._folder / "grown.json").read_text(encoding="utf-8"))
            model = files.load(self._folder)
            self._growth.grown(model)
            self.rounds = self.resumed = int(told["rounds"])
        except Exception as error:  # noqa: BLE001 - whatever a damaged file makes its library say
            log.warning("the trees in %s cannot be read, they grow anew: %s", self._folder.name, error)
            return None
        return model

    def keep(self) -> None:
        """Replaces the folder in one step. Where there is no room for it, whoever goes on has further to go."""
        model = self._newest
        if self._folder is None or model is None:
            return
        partial = self._folder.with_name(f"{self._folder.name}.partial")
        files = estimator_family(self._candidate).files or SKOPS
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            files.save(model, partial)
            (partial / "grown.json").write_text(json.dumps({"rounds": self.rounds}), encoding="utf-8")
            shutil.rmtree(self._folder, ignore_errors=True)
            partial.rename(self._folder)
        except OSError as error:
            log.warning("the trees in %s could not be kept: %s", self._folder.name, error)
            with contextlib.suppress(OSError):
                shutil.rmtree(partial, ignore_errors=True)

"""The trial function: candidate + examples → a measurement and a model. Knows no server and no database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.costs import by_number
from easel.match.examples import Example
from easel.match.judge import (
    all_scores,
    baseline,
    calibrate,
    chosen_apart,
    fold_spread,
    losses_by_example,
    rows_of,
    sampling_error,
    score,
)
from easel.match.kinds import Task
from easel.match.metrics import metric_for
from easel.match.model import Model
from easel.match.registry import is_network
from easel.match.repeats import repeated_rounds
from easel.match.split import Round, rounds, rows_by_example
from easel.match.summary import why_not_ready
from easel.match.targets import fit_classes, fit_values
from easel.match.templates import match_program
from easel.records.measurement import Measurement

FEWEST_IN_FOLD = 30
"""The score of a fold with fewer examples says nothing about how much folds differ."""


@dataclass(frozen=True)
class Conditions:
    """How a trial is run. `clock` gives seconds; the trial ends soon after `budget_s` of them.

    `epochs`, when given, replaces the family's own number of passes (a low fidelity, or a quick test).
    """

    seed: int
    budget_s: float
    clock: Callable[[], float]
    checkpoints: Path | None = None
    progress: Callable[[float], None] = lambda share: None
    metric: str | None = None
    epochs: int | None = None
    until: float | None = None
    """A share of the whole trial at which to stop: of the epochs of a network, of the examples of other families."""
    examples_are_part: bool = False
    """The examples are only those that a slice of such a share needs: nothing more is left out of them."""
    embeddings: Path | None = None
    give_way: Callable[[], bool] = lambda: False
    """Asked between epochs and between rounds of trees: whether to stop there and keep what was learned."""

    @property
    def part(self) -> float | None:
        """The share of the given examples to train on; None: all of them."""
        return None if self.examples_are_part else self.until


@dataclass(frozen=True)
class Trained:
    """`losses[i]` is the validation loss of example i (NaN where it only trained): large means surprising."""

    measurement: Measurement
    model: Model
    losses: NDArray[np.float64]
    learned: Learned


@dataclass(frozen=True)
class Prepared:
    """All that a trial learns from: how its examples are encoded as targets, and what each round learns from."""

    candidate: Candidate
    program: Program
    examples: Sequence[Example]
    target: Any
    plan: Sequence[Round]
    conditions: Conditions
    began: float


def train(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    folds: Sequence[int],
    conditions: Conditions,
) -> Trained:
    """Validate `candidate` on the fixed folds, then keep the model to serve.

    The same seed, examples and folds give the same measurement, unless the budget cuts the training short.
    """
    prepared = prepare(candidate, program, examples, folds, conditions)
    return conclude(prepared, _learner(candidate)(prepared))


def prepare(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    folds: Sequence[int],
    conditions: Conditions,
) -> Prepared:
    """Returns what there is to learn from; refuses examples that nothing can be learned from."""
    missing = why_not_ready(program, examples)
    if missing is not None:
        raise InvalidInput(missing)
    task = match_program(program).task
    began = conditions.clock()
    outputs = [example.output for example in examples]
    target: Any = None
    if task is Task.CLASSIFY:
        target = fit_classes(program.output, outputs)
    elif task is Task.REGRESS:
        target = fit_values(program.output, outputs)
    plan = rounds(folds, ordered=program.column_of("time") is not None)
    whole = conditions.until is None or conditions.until >= 1.0
    if len(plan) > 1 and whole and not is_network(candidate):
        plan += repeated_rounds(program, examples, folds, conditions.seed)
    return Prepared(candidate, program, examples, target, plan, conditions, began)


def conclude(prepared: Prepared, learned: Learned) -> Trained:
    """Returns the measurement of what was learned, and the model to serve."""
    candidate, program, conditions = prepared.candidate, prepared.program, prepared.conditions
    target, plan, examples = prepared.target, prepared.plan, prepared.examples
    task = match_program(program).task
    name, _ = metric_for(task, conditions.metric)
    validated = learned.validated
    if not np.isfinite(np.asarray(learned.predicted, dtype=float)).all():
        raise InvalidInput(f"{candidate.name} gave answers that are not numbers")
    by_example = rows_by_example(validated)
    learned = _calibrated(task, learned, len(by_example))
    inner = by_number(name, getattr(target, "names", ()))
    chosen = chosen_apart(learned.truth, learned.predicted, by_example) if task is Task.CLASSIFY else {}
    scores = all_scores(task, learned.truth, learned.predicted, chosen)
    if inner != name:
        scores[name] = score(task, inner, learned.truth, learned.predicted, chosen)
    quality = scores.get(name, float("nan"))
    if not np.isfinite(quality):
        raise InvalidInput(f"{candidate.name}: {name} has no value for these examples")
    losses = np.full(len(examples), np.nan)
    losses[validated[by_example[:, 0]]] = losses_by_example(
        task, learned.truth, learned.predicted, by_example
    )
    error = sampling_error(task, inner, learned.truth, learned.predicted, chosen, conditions.seed, by_example)
    of_folds = [
        score(task, inner, learned.truth[rows], learned.predicted[rows], rows_of(chosen, rows))
        for rows in _fold_rows(plan, validated)
    ]
    measurement = Measurement(
        metric=name,
        quality=float(quality),
        seconds=conditions.clock() - prepared.began,
        trained_on=len(plan[0].train),
        validated_on=len(by_example),
        rounds=len(plan),
        stopped=learned.stopped,
        error=fold_spread(of_folds, error),
        baseline=baseline(task, inner, learned.truth, len(getattr(target, "names", ()))),
        scores=scores,
    )
    return Trained(measurement, learned.model, losses, learned)


@dataclass(frozen=True)
class Learned:
    """Truth and prediction for the validated examples, in the order of the rounds, and the model to serve."""

    truth: NDArray[Any]
    predicted: NDArray[Any]
    model: Model
    stopped: str
    validated: NDArray[np.intp]
    curves: tuple[tuple[tuple[float, float], ...], ...] = ()
    """For each round of a network: training and validation loss of each epoch."""
    resumed: int = 0
    """Epochs, or rounds of trees, that an earlier slice or an attempt killed halfway had done."""
    reached: float = 1.0
    """The share of the whole trial that is done; one that stopped by itself is done."""
    halved: int = 0
    """How often it had to do with less of a GPU's memory than it wanted (`fitting.Bag`)."""


def _fold_rows(plan: Sequence[Round], validated: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Returns the places of the answers of each round of the first turn; none where a round has too few to score."""
    if min(len(one.validate) for one in plan) < FEWEST_IN_FOLD:
        return []
    sizes = [len(one.validate) for one in plan if one.turn == 0]
    ends = np.cumsum(sizes)
    return [
        np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True) if end <= len(validated)
    ]


def _calibrated(task: Task, learned: Learned, examples: int) -> Learned:
    """Returns a model whose probabilities mean what they say, and answers as it gives them."""
    calibration = calibrate(task, learned.truth, learned.predicted, examples)
    predicted = calibration.apply(learned.predicted) if task is Task.CLASSIFY else learned.predicted
    return replace(learned, predicted=predicted, model=replace(learned.model, calibration=calibration))


def _learner(candidate: Candidate) -> Callable[[Prepared], Learned]:
    if is_network(candidate):
        from easel.match.train_network import train_network

        return train_network
    from easel.match.train_estimator import train_estimator

    return train_estimator

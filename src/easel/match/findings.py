"""What a scientist asks after the first score: which inputs matter, where it fails, how sure, what would help.

All of it is measured on examples that the model judged did not see: the candidate is trained anew without some folds,
on all and on growing shares of the other examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.contributions import Shapley, reasons, shapley_of
from easel.match.contributions import summed_up as contributions_told
from easel.match.costs import by_number
from easel.match.examples import Example, Object
from easel.match.importance import parts_of, permutation_drops, summed_up
from easel.match.judge import COVER, Calibration, score
from easel.match.kinds import Task
from easel.match.learning_curve import SHARES, foretell
from easel.match.metrics import BY_LABEL, metric_for
from easel.match.model import Model
from easel.match.split import FOLDS, SMALL
from easel.match.targets import Classes, fit_classes, value_matrix
from easel.match.templates import match_program
from easel.match.train import Conditions, train
from easel.match.weak_spots import worst_groups

FEW = 200
"""Below so many examples every fold is held out once; below `SMALL` two are."""
MOST_HELD = 2_000
WORST = 20
MOST_CLASSES, MOST_POINTS = 60, 500
BINS = 10
LEAST_TO_LEARN = 16


@dataclass
class _HeldOut:
    """Of all folds held out so far: rows, the answers of the model that saw all others, and losses by share."""

    rows: list[int] = field(default_factory=list)
    answers: list[NDArray[Any]] = field(default_factory=list)
    decided: list[NDArray[Any]] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)
    drops: dict[str, list[float]] = field(default_factory=dict)
    losses: dict[float, list[NDArray[np.float64]]] = field(default_factory=dict)
    counts: dict[float, list[int]] = field(default_factory=dict)
    skipped: int = 0
    shapley: list[Shapley] = field(default_factory=list)
    no_shapley: str | None = None
    reasons: dict[int, list[dict[str, Any]]] = field(default_factory=dict)


def examine(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    folds: Sequence[int],
    digests: Sequence[str],
    conditions: Conditions,
) -> dict[str, Any]:
    """The findings as JSON. Raises InvalidInput for tasks whose answers are neither classes nor numbers."""
    task = match_program(program).task
    if task not in (Task.CLASSIFY, Task.REGRESS):
        raise InvalidInput("a report is made of models that answer with classes or numbers")
    metric, _ = metric_for(task, conditions.metric)
    began = conditions.clock()
    names = fit_classes(program.output, [e.output for e in examples]) if task is Task.CLASSIFY else None
    truth: NDArray[Any] = (
        value_matrix([e.output for e in examples]) if names is None else names([e.output for e in examples])
    )
    found = _HeldOut()
    of = np.asarray(folds)
    outers = [fold for fold in range(FOLDS) if (of == fold).any() and (of != fold).any()]
    if not outers:
        of, outers = np.arange(len(of)) % 2, [0, 1]
    wanted = len(outers) if len(of) < FEW else 2 if len(of) < SMALL else 1
    ordered = program.column_of("time") is not None
    if ordered:
        outers, wanted = outers[-1:], 1
    for number, fold in enumerate(outers[:wanted]):
        took = conditions.clock() - began
        if number and took * (number + 1) / number > conditions.budget_s:
            break
        held = np.flatnonzero(of == fold)[:MOST_HELD]
        rest = np.flatnonzero(of < fold if ordered else of != fold)
        _hold_out(candidate, program, examples, truth, names, held, rest, of, conditions, metric, found)
    if not found.rows:
        raise InvalidInput("there are too few examples to hold some out: feed more")
    return _told(task, metric, program, examples, digests, truth, names, candidate, found)


def _hold_out(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    truth: NDArray[Any],
    names: Classes | None,
    held: NDArray[np.intp],
    rest: NDArray[np.intp],
    folds: NDArray[np.int64],
    conditions: Conditions,
    metric: str,
    found: _HeldOut,
) -> None:
    """Train on shares of the rest, answer what is held out, and deal the columns of the largest model's anew."""
    inputs = [examples[i].input for i in held]
    order = np.random.default_rng(conditions.seed).permutation(rest)
    began = conditions.clock()
    for share in SHARES:
        part = np.sort(order[: round(share * len(order))])
        if len(part) < LEAST_TO_LEARN and share < 1.0:
            continue
        try:
            model = _trained(candidate, program, [examples[i] for i in part], folds[part], conditions)
        except InvalidInput:
            # A share without two examples of two classes teaches nothing; all of them must.
            if share == 1.0:
                raise
            continue
        answers = _aligned(model, model.predict(inputs), names)
        found.losses.setdefault(share, []).append(_errors(names, truth[held], answers))
        found.counts.setdefault(share, []).append(len(part))
    found.rows += held.tolist()
    found.answers.append(answers)
    found.decided.append(_decided(model, answers, metric, names))
    found.covered += _covered(model.calibration, truth[held], answers)

    _contributions(model, program, examples, held, rest, found.decided[-1], names, found)

    def score(asked: Sequence[Object]) -> float:
        answered = _aligned(model, model.predict(asked), names)
        return _score(names, metric, truth[held], _decided(model, answered, metric, names), answered)

    def in_time() -> bool:
        return conditions.clock() - began < conditions.budget_s / 2

    parts = parts_of(program.input, inputs[0])
    looked = 0
    for name, drops in permutation_drops(parts, inputs, score, conditions.seed, in_time):
        found.drops.setdefault(name, []).extend(drops)
        looked += 1
    found.skipped = max(found.skipped, len(parts) - looked)


def _contributions(
    model: Model,
    program: Program,
    examples: Sequence[Example],
    held: NDArray[np.intp],
    rest: NDArray[np.intp],
    decided: NDArray[Any],
    names: Classes | None,
    found: _HeldOut,
) -> None:
    """Adds what each column adds to the answers, as far as the model has exact values; why not, where it has none."""
    told = shapley_of(
        model, program.input, [examples[i].input for i in held], [examples[i].input for i in rest]
    )
    if isinstance(told, str):
        found.no_shapley = told
        return
    if names is not None and model.target.names != names.names:
        found.no_shapley = "a class occurs among the held-out examples alone"
        return
    found.shapley.append(told)
    for place, row in enumerate(held[: len(told.values)].tolist()):
        answered = 0 if names is None else int(decided[place].argmax())
        found.reasons[row] = reasons(told, place, answered)


def _trained(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    folds: NDArray[np.int64],
    conditions: Conditions,
) -> Model:
    """Trains with three folds of its own, enough for temperature and margins; or with those by group or time."""
    marked = program.column_of("group") is not None or program.column_of("time") is not None
    own = folds.tolist() if marked else [k % 3 for k in range(len(examples))]
    return train(candidate, program, examples, own, replace(conditions, until=None)).model


def _aligned(model: Model, answers: NDArray[Any], names: Classes | None) -> NDArray[Any]:
    """Class probabilities in the order of all classes: a model may not have seen every one."""
    if names is None or model.target.names == names.names:
        return answers
    place = {name: k for k, name in enumerate(names.names)}
    whole = np.zeros((len(answers), len(names.names)))
    whole[:, [place[name] for name in model.target.names]] = answers
    return whole


def _decided(model: Model, answers: NDArray[Any], metric: str, names: Classes | None) -> NDArray[Any]:
    """Answers whose largest entry is the class that the model would give."""
    if names is None or model.target.names != names.names:
        return answers
    return model.calibration.chosen(answers, by_number(metric, names.names))


def _score(
    names: Classes | None, metric: str, truth: NDArray[Any], decided: NDArray[Any], answers: NDArray[Any]
) -> float:
    task = Task.REGRESS if names is None else Task.CLASSIFY
    inner = by_number(metric, () if names is None else names.names)
    return score(task, inner, truth, decided if metric in BY_LABEL else answers)


def _errors(names: Classes | None, truth: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.float64]:
    """1 for a wrong class; of numbers the squared error in units of the truth's variance, so that 1 is the mean's."""
    if names is not None:
        wrong: NDArray[np.float64] = (answers.argmax(1) != truth).astype(float)
        return wrong
    scale = np.maximum(truth.var(0), 1e-12)
    error: NDArray[np.float64] = (((truth - answers) ** 2) / scale).mean(1)
    return error


def _covered(calibration: Calibration, truth: NDArray[Any], answers: NDArray[Any]) -> list[bool]:
    if not calibration.margins:
        return []
    inside: list[bool] = (np.abs(truth - answers) <= np.asarray(calibration.margins)).all(1).tolist()
    return inside


def _told(
    task: Task,
    metric: str,
    program: Program,
    examples: Sequence[Example],
    digests: Sequence[str],
    truth: NDArray[Any],
    names: Classes | None,
    candidate: Candidate,
    found: _HeldOut,
) -> dict[str, Any]:
    rows = np.asarray(found.rows)
    answers, decided = np.concatenate(found.answers), np.concatenate(found.decided)
    own = truth[rows]
    losses = _errors(names, own, decided if names is not None else answers)
    labels = [""] * len(rows) if names is None else [names.names[k] for k in own.tolist()]
    folds = max(len(c) for c in found.counts.values())
    by_count = {
        int(np.mean(found.counts[share])): np.concatenate(parts)
        for share, parts in sorted(found.losses.items())
        if len(parts) == folds
    }
    future = foretell(by_count)
    surprise = _surprise(names, own, answers)
    worst = np.argsort(-surprise, kind="stable")[:WORST]
    return {
        "judged_by": candidate.name,
        "metric": metric,
        "held_out": len(rows),
        "score": _score(names, metric, own, decided, answers),
        "importance": [asdict(one) for one in summed_up(found.drops)],
        "columns_not_looked_at": found.skipped,
        "contributions": contributions_told(found.shapley),
        "contributions_of": found.shapley[0].unit if found.shapley else None,
        "no_contributions": None if found.shapley else found.no_shapley,
        "weak_groups": [
            asdict(one)
            for one in worst_groups(program.input, [examples[i].input for i in rows], labels, losses)
        ],
        "worst_examples": [
            {
                "digest": digests[rows[k]],
                "truth": _shown(names, own[k]),
                "answer": _answer(names, decided[k]),
                "because": found.reasons.get(int(rows[k]), []),
            }
            for k in worst.tolist()
        ],
        "error_kind": "share of wrong answers"
        if names is not None
        else "squared error in variances of the truth",
        "learning_curve": [
            {"examples": n, "error": float(values.mean())} for n, values in sorted(by_count.items())
        ],
        "twice_the_examples": None if future is None else asdict(future),
        "coverage": float(np.mean(found.covered)) if found.covered else None,
        "meant_to_cover": COVER if found.covered else None,
        **_pictures(names, own, answers, decided),
    }


def _surprise(names: Classes | None, truth: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.float64]:
    if names is None:
        return _errors(names, truth, answers)
    chosen = answers[np.arange(len(truth)), truth]
    logs: NDArray[np.float64] = -np.log(np.clip(chosen, 1e-12, 1.0))
    return logs


def _shown(names: Classes | None, value: Any) -> Any:
    return np.asarray(value).tolist() if names is None else names.names[int(value)]


def _answer(names: Classes | None, row: NDArray[Any]) -> Any:
    return row.tolist() if names is None else names.names[int(row.argmax())]


def _pictures(
    names: Classes | None, truth: NDArray[Any], answers: NDArray[Any], decided: NDArray[Any]
) -> dict[str, Any]:
    """Confusion and reliability of classes, or answers against truths of the first number."""
    if names is None:
        step = max(1, len(truth) // MOST_POINTS)
        both = np.stack([truth[::step, 0], answers[::step, 0]], axis=1)[:MOST_POINTS]
        return {"residuals": both.tolist()}
    reliability = calibration_bins(truth, answers)
    told: dict[str, Any] = {
        "reliability": reliability,
        "calibration_error": sum(b["share"] * abs(b["right"] - b["said"]) for b in reliability),
    }
    if len(names.names) <= MOST_CLASSES:
        counts = np.zeros((len(names.names), len(names.names)), dtype=int)
        np.add.at(counts, (truth, decided.argmax(1)), 1)
        told |= {"classes": list(names.names), "confusion": counts.tolist()}
    return told


def calibration_bins(truth: NDArray[Any], probabilities: NDArray[Any]) -> list[dict[str, float]]:
    """How sure the model said it was, how often it was right, and of what share of the examples, by tenths."""
    said, right = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    return [
        {
            "said": float(said[place == k].mean()),
            "right": float(right[place == k].mean()),
            "share": float((place == k).mean()),
        }
        for k in range(BINS)
        if (place == k).any()
    ]

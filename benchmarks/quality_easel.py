"""Easel on one set of `benchmarks/quality.py`, in a process of its own: candidates in turn, then an ensemble.

python -m benchmarks.quality_easel SET answers.json --budget 20 --seed 0
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality_sets import DataSet, all_sets, split
from easel.match.candidate import Candidate
from easel.match.ensemble import Answered, mix, side_by_side
from easel.match.examples import Example
from easel.match.judge import all_scores, calibrate, sampling_error
from easel.match.kinds import Task
from easel.match.luck import choice_luck, prefers_mixture
from easel.match.propose import propose_candidates
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, Trained, train

METRIC = {Task.CLASSIFY: "accuracy", Task.REGRESS: "r2"}


def run_easel(one: DataSet, seed: int, budget_s: float, most: int = 0) -> dict[str, Any]:
    """Candidates in the order of their promise per cost, each family once before any twice; then an ensemble."""
    program, metric = one.program, METRIC[one.task]
    learn, test = split(one, seed, most)
    examples = [read_example(program, one.x[i], one.y[i]) for i in learn]
    asked = [read_example(program, one.x[i], one.y[i]) for i in test]
    folds = assign_folds(strata(program, examples))
    began = time.process_time()

    def left() -> float:
        return budget_s - (time.process_time() - began)

    found: dict[str, Trained] = {}
    ended: dict[str, float] = {}
    for candidate in in_turn(propose_candidates(program, summarise(program, examples))):
        if left() <= 0 or (found and candidate.cost_s > 2 * left()):
            continue
        conditions = Conditions(seed, max(1.0, left()), time.process_time, metric=metric)
        try:
            found[candidate.name] = train(candidate, program, examples, folds, conditions)
            ended[candidate.name] = time.process_time() - began
        except (ArithmeticError, ValueError) as error:
            print(f"{one.name}: {candidate.name} failed: {error}", file=sys.stderr)
    judged = _judged(one, found, asked, [example.output for example in examples], began)
    return {**judged, "path": path_of(one, found, ended, asked)}


def path_of(
    one: DataSet, found: dict[str, Trained], ended: dict[str, float], asked: list[Example]
) -> list[list[float]]:
    """Returns after how many processor seconds which test score would have been served: that of the best so far."""
    inputs, path, best = [example.input for example in asked], [], -np.inf
    for name, trained in found.items():
        if trained.measurement.quality > best:
            best = trained.measurement.quality
            truth = trained.model.target([example.output for example in asked])
            test = all_scores(one.task, truth, trained.model.predict(inputs))
            path.append([ended[name], test[METRIC[one.task]]])
    return path


def in_turn(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Every family's first candidate, then every family's second, and so on."""
    turns: dict[str, int] = {}
    ranked = []
    for place, candidate in enumerate(candidates):
        turn = turns[candidate.family] = turns.get(candidate.family, -1) + 1
        ranked.append((turn, place, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda one: one[:2])]


def _judged(
    one: DataSet, found: dict[str, Trained], asked: list[Example], outputs: list[Any], began: float
) -> dict[str, Any]:
    """Returns what is shown for the best (or the ensemble), and its answers for the test."""
    task, metric = one.task, METRIC[one.task]
    best = max(found, key=lambda name: found[name].measurement.quality)
    kept = found[best]
    shown, chosen, calibration = kept.measurement.quality, best, kept.model.calibration
    error = kept.measurement.error
    inputs = [example.input for example in asked]
    whole = [name for name, t in found.items() if t.measurement.validated_on == kept.measurement.validated_on]
    shared = side_by_side(
        {
            name: Answered(found[name].learned.validated, np.asarray(found[name].learned.predicted))
            for name in whole
        }
    )
    of = shared.by_example
    right = kept.model.target([outputs[row] for row in shared.rows])
    weights, offered = {best: 1.0}, dict(shared.predicted)
    luck = None
    if len(whole) >= 3:
        mixture = mix(task, metric, right, shared.predicted, of)
        of_mixture = calibrate(task, right, mixture.predicted, len(of))
        final = of_mixture.apply(mixture.predicted) if task is Task.CLASSIFY else mixture.predicted
        offered["ensemble"] = final
        scores = all_scores(task, right, final)
        luck = choice_luck(task, metric, right, offered, by_example=of)
        if prefers_mixture(scores[metric], shown, luck):
            shown, chosen, calibration = scores[metric], "ensemble", of_mixture
            weights = dict(mixture.weights)
            error = sampling_error(task, metric, right, final, by_example=of)
            luck = 0.0
    cpu_s = time.process_time() - began
    predicted = np.sum([w * found[name].model.predict(inputs) for name, w in weights.items()], axis=0)
    if task is Task.CLASSIFY and chosen == "ensemble":
        predicted = calibration.apply(predicted)
    target = found[best].model.target
    truth = target([example.output for example in asked])
    covered = None
    if task is Task.REGRESS and calibration.margins:
        covered = float(np.mean(np.abs(truth - predicted) <= np.asarray(calibration.margins)))
    return {
        "shown": shown - (luck or 0.0),
        "shown_error": error,
        "luck": luck,
        "covered": covered,
        "validated_on": len(of),
        "model": chosen
        if chosen == best
        else "+".join(sorted({found[n].model.candidate.family for n in weights})),
        "cpu_s": cpu_s,
        "tried": len(found),
        "truth": truth.tolist(),
        "answers": np.asarray(predicted, dtype=float).tolist(),
        "scores": {
            name: [
                t.measurement.quality,
                all_scores(task, truth, t.model.predict(inputs))[metric],
                t.measurement.seconds,
            ]
            for name, t in found.items()
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set")
    parser.add_argument("answers", type=Path)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learn", type=int, default=0)
    parser.add_argument("--label", default="")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    for one in all_sets({wanted.set}):
        result = run_easel(one, wanted.seed, wanted.budget, wanted.learn)
        wanted.answers.write_text(json.dumps(result), encoding="utf-8")
        return 0
    print(f"there is no set {wanted.set}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())

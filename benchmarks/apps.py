"""Test accuracy of an app's best model within a time limit, on real data, for each kind of program.

    python benchmarks/apps.py [--only wine digits] [--minutes 10] [--quick] [--clock cpu] [--json PATH]

One app at a time on its own: candidates are chosen by the platform's policy from their priors and what was
found so far, trained by the trial function, and the model with the best validation score answers the test set,
which nothing before has seen. `--clock cpu` counts this process's processor seconds, for shared machines.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.errors import EaselError
from easel.flow.apps.beliefs import Costs
from easel.flow.apps.learned_book import LearnedBook
from easel.match.loop import Diverged
from easel.match.metrics import metric_for
from easel.match.propose import propose_candidates
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.templates import match_program
from easel.match.train import Conditions, train
from easel.records.decision import StartTrial
from easel.schedule.policies import named
from easel.schedule.state import PoolDevice, PoolState, Tenant

TARGETS = {
    "mnist_5k": 0.97,
    "digits": 0.98,
    "breast_cancer": 0.96,
    "wine": 0.97,
    "GunPoint": 0.97,
    "ItalyPowerDemand": 0.95,
    "BasicMotions": 0.97,
    "JapaneseVowels": 0.95,
    "diabetes": 0.45,
}
SPLIT_HERE = ("digits", "breast_cancer", "wine", "diabetes")
Pairs = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Result:
    """`first_s`: when the first usable model was there; `found_s`: when the one that answered was."""

    data: str
    template: str
    best: str
    validation: float
    test: float
    target: float
    trials: int
    first_s: float
    found_s: float
    seconds: float


def data_folder() -> Path | None:
    here = Path(os.environ.get("EASEL_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))
    return here / "train_sets" if (here / "train_sets").is_dir() else None


def bundled(name: str, split: int = 42) -> tuple[str, Pairs, Pairs]:
    """Data that come with scikit-learn, split 80/20 by the seed `split`, stratified by class."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    data = getattr(datasets, f"load_{name}")()
    classify = name != "diabetes"
    parts = train_test_split(
        data.data, data.target, test_size=0.2, random_state=split, stratify=data.target if classify else None
    )
    kind = "Tensor[8, 8, 1]" if name == "digits" else f"Tensor[{data.data.shape[1]}]"
    goal = "Category" if classify else "Number"
    shape = (8, 8, 1) if name == "digits" else (-1,)
    answer: Callable[[Any], Any] = str if classify else float
    train, test = (
        [(x.reshape(shape), answer(y)) for x, y in zip(parts[k], parts[k + 2], strict=True)] for k in (0, 1)
    )
    return f"{{input: {{[{kind}], []}}, output: {{[{goal}], []}}}}", train, test


def mnist(folder: Path, split: int = 42) -> tuple[str, Pairs, Pairs]:
    from sklearn.model_selection import train_test_split

    with gzip.open(folder / "mnist_5k.csv.gz", "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1)
    parts = train_test_split(table, test_size=0.2, random_state=split, stratify=table[:, 0])
    train, test = ([(row[1:].reshape(28, 28, 1), int(row[0])) for row in part] for part in parts)
    return "{input: {[Tensor[28, 28, 1]], []}, output: {[Tensor[10]], []}}", train, test


def series(folder: Path, name: str) -> tuple[str, Pairs, Pairs]:
    """UCR/UEA series on their own test splits."""
    grouped: dict[tuple[str, str, str], list[list[float]]] = {}
    with gzip.open(folder / f"{name}.csv.gz", "rt") as lines:
        for split, case, label, _, *values in list(csv.reader(lines))[1:]:
            grouped.setdefault((split, case, label), []).append([float(v) for v in values if v])
    train, test = (
        [(np.array(rows).T, label) for (split, _, label), rows in grouped.items() if split == wanted]
        for wanted in ("train", "test")
    )
    channels = train[0][0].shape[1]
    return f"{{input: {{[Tensor[{channels}]], [next]}}, output: {{[Category], []}}}}", train, test


def load(name: str, split: int = 42) -> tuple[str, Pairs, Pairs] | None:
    if name in ("digits", "breast_cancer", "wine", "diabetes"):
        return bundled(name, split)
    folder = data_folder()
    if folder is None:
        print(f"SKIPPED {name}: no evaluation data here; set EASEL_DATA", file=sys.stderr)
        return None
    return mnist(folder, split) if name == "mnist_5k" else series(folder, name)


def run(
    name: str, limit_s: float, clock: Callable[[], float], seed: int = 0, split: int = 42
) -> Result | None:
    """Trials in the order that the policy chooses until the limit; never a look at the test set before the end."""
    loaded = load(name, split)
    if loaded is None:
        return None
    text, train_pairs, test_pairs = loaded
    began = clock()
    program = parse_program(text)
    examples = [read_example(program, *pair) for pair in train_pairs]
    folds = assign_folds(strata(program, examples))
    summary = summarise(program, examples)
    candidates = propose_candidates(program, summary)
    tenant = Tenant(
        name,
        tuple(candidate.name for candidate in candidates),
        LearnedBook(()).prior(name, candidates, summary).belief(),
        Costs(()).seconds(candidates),
        ceiling=1.0,
    )
    state, policy = PoolState({name: tenant}, PoolDevice("core")), named("easel")
    best, first_s, found_s = None, float("nan"), 0.0
    while (elapsed := clock() - began) < limit_s:
        decision = policy.decide(state.on(PoolDevice("core"), elapsed))
        if not isinstance(decision, StartTrial):
            break
        state = state.started(decision)
        candidate = candidates[decision.index]
        conditions = Conditions(seed=seed, budget_s=max(1.0, limit_s - elapsed), clock=clock)
        try:
            trained = train(candidate, program, examples, folds, conditions)
        except (EaselError, Diverged) as error:
            print(f"  {candidate.name}: {error}", file=sys.stderr)
            state = state.finished(decision, float("nan"), clock() - began - elapsed)
            continue
        quality, now = trained.measurement.quality, clock() - began
        state = state.finished(decision, quality, now - elapsed)
        if best is None:
            first_s = now
        print(
            f"  {now:6.1f} s {candidate.name}: {quality:.4f} ({now - elapsed:.1f} s)",
            file=sys.stderr,
            flush=True,
        )
        if best is None or quality > best.measurement.quality:
            best, found_s = trained, now
    if best is None:
        return None
    tests = [read_example(program, *pair) for pair in test_pairs]
    predicted = best.model.predict([example.input for example in tests])
    truth = best.model.target([example.output for example in tests])
    template = match_program(program)
    return Result(
        data=name,
        template=template.name,
        best=best.model.candidate.name,
        validation=round(best.measurement.quality, 4),
        test=round(metric_for(template.task)[1](truth, predicted), 4),
        target=TARGETS[name],
        trials=len(state.tenants[name].pulls),
        first_s=round(first_s, 1),
        found_s=round(found_s, 1),
        seconds=round(clock() - began, 1),
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--only", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--quick", action="store_true", help="twelve seconds for each, tables only")
    arguments.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    arguments.add_argument("--json", type=Path)
    arguments.add_argument(
        "--splits", type=int, default=5, help="of the data that has no test split of its own"
    )
    options = arguments.parse_args()
    clock = time.monotonic if options.clock == "wall" else time.process_time
    names = (
        [n for n in options.only if n in ("wine", "breast_cancer", "diabetes")]
        if options.quick
        else options.only
    )
    limit = 12.0 if options.quick else 60 * options.minutes
    results = []
    for name in names:
        print(name, file=sys.stderr)
        splits = range(options.splits) if name in SPLIT_HERE else [42]
        for split in splits:
            result = run(name, limit, clock, split=split)
            if result is None:
                continue
            results.append(result)
            if options.json:
                options.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    print(
        "| data | template | best candidate | trials | first s | found s | validation | test | target | met |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---|")
    for name in dict.fromkeys(r.data for r in results):
        tests = [r.test for r in results if r.data == name]
        print(f"mean test of {name} over {len(tests)}: {np.mean(tests):.4f}", file=sys.stderr)
    for r in results:
        met = "yes" if r.test >= r.target else "no"
        cells = f"| {r.data} | {r.template} | {r.best} | {r.trials} | {r.first_s} | {r.found_s} "
        print(f"{cells}| {r.validation} | {r.test} | {r.target} | {met} |")


if __name__ == "__main__":
    main()

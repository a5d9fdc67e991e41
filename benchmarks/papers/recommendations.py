"""What `auto` recommends in the end, on every cloud job that was measured: never infeasible, and at what money.

`OMP_NUM_THREADS=1 python -m benchmarks.papers.recommendations [--seeds 30] [--jobs cnn …] [--quick]`. Maximise the
accuracy on the full data under a limit of cost. Says in how many seeds the study ended with an infeasible
recommendation, and the money (median, 90th percentile, of EI_c's median) until the recommendation of the moment is, and
from then on stays, feasible with at least 95 % of the best feasible accuracy. Not the best so far: what is recommended.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

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
STRATEGIES: dict[str, dict[str, object]] = {"ei-c": {"initial": 4}, "auto": {}}


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


def line(name: str, job: Job, strategy: str, seeds: int, reference: float) -> tuple[str, float]:
    """Returns the table's line, and the median of the money."""
    limit = limit_of(job)
    mean = float(np.mean([values["cost"] for values in full(job)]))
    goal = maximise("accuracy", f"cost <= {limit}", budget={"cost": TRIALS * mean})
    infeasible, money = 0, []
    for seed in range(seeds):
        trace = follow(job, goal, strategy, seed, trials=TRIALS, **STRATEGIES[strategy])
        infeasible += not trace.cost[-1] <= limit
        money.append(fabulinus_search.stays(trace, good(job, trace, limit)))
    median = float(np.median(money))
    ninety = float(np.quantile(money, 0.9, method="higher"))
    of = median / (reference or median)
    return (
        f"| {name} | {limit:.3f} | {strategy} | {seeds} | {infeasible} | {median:.3f} | {of:.2f} | {ninety:.3f} |",
        median,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="names, or how they begin")
    parser.add_argument("--quick", action="store_true", help="one seed, written nowhere")
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
            told, median = line(name, JOBS[name](), strategy, seeds, reference)
            reference = reference or median
            lines.append(told)
            print(told, flush=True)
    if not arguments.quick:
        (RESULTS / "recommendations.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

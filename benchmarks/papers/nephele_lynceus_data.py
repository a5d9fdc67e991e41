"""The earlier CNN and Multilayer runs (`lynceus_tensorflow`, full data only): Lynceus against random search.

`python -m benchmarks.papers.nephele_lynceus_data [--seeds 30] [--quick]`. Minimise cost s.t. accuracy ≥ 0.85, within a
budget of 40 average runs; reports the incumbent's cost over the optimum's.
"""

from __future__ import annotations

import argparse
import csv

import numpy as np

from benchmarks.papers.cloud_jobs import FLAVOURS, RESULTS, Job, data, follow, stamp
from easel.declare.dimensions import Categorical, DimensionRole, Ordinal
from easel.declare.goal import minimise
from easel.declare.space import Space, point_key

RUNS = 40


def load(name: str) -> Job:
    with data(f"lynceus_tensorflow/{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = {
        c: tuple(sorted({float(r[c]) for r in rows})) for c in ("n_cores", "learning_rate", "batch_size")
    }
    space = Space(
        (
            Categorical("vm_flavor", tuple(FLAVOURS), role=DimensionRole.RESOURCE),
            Ordinal("n_cores", numbers["n_cores"], role=DimensionRole.RESOURCE),
            Ordinal("learning_rate", numbers["learning_rate"]),
            Ordinal("batch_size", numbers["batch_size"]),
            Categorical("synchronism", ("sync", "async")),
        )
    )
    measured = {}
    for r in rows:
        point = {
            "vm_flavor": r["vm_flavor"],
            "synchronism": r["synchronism"],
            **{c: float(r[c]) for c in numbers},
        }
        measured[point_key(space.check(point))] = {
            "accuracy": float(r["accuracy"]),
            "time": float(r["time_s"]),
            "cost": float(r["cost_usd"]),
        }
    return Job(space, measured)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="two seeds, written nowhere")
    arguments = parser.parse_args()
    seeds = 2 if arguments.quick else arguments.seeds
    lines = [
        "# Lynceus against random search on its own data",
        "",
        f"`python -m benchmarks.papers.nephele_lynceus_data`; {seeds} seeds, money for {RUNS} average runs. CNO of the incumbent.",
        "",
        stamp(),
        "",
        "| job | feasible | strategy | CNO median | CNO p90 | optimum found |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("cnn", "multilayer"):
        job = load(name)
        best = min(v["cost"] for v in job.measured.values() if v["accuracy"] >= 0.85)
        feasible = sum(v["accuracy"] >= 0.85 for v in job.measured.values())
        budget = RUNS * float(np.mean([v["cost"] for v in job.measured.values()]))
        goal = minimise("cost", "accuracy >= 0.85", budget={"cost": budget}, at="any")
        for strategy, options in (("lynceus", {"initial": 12}), ("nephele", {"initial": 12}), ("random", {})):
            cno = []
            for seed in range(seeds):
                trace = follow(job, goal, strategy, seed, trials=400, until=best * (1 + 1e-9), **options)
                ok = trace.accuracy >= 0.85
                cno.append(float(np.min(trace.cost[ok])) / best if ok.any() else float("inf"))
            found = 100 * np.mean(np.array(cno) < 1 + 1e-6)
            lines.append(
                f"| {name} | {feasible} of {len(job.measured)} | {strategy} | {np.median(cno):.2f} | "
                f"{np.quantile(cno, 0.9, method='higher'):.2f} | {found:.0f} % |"
            )
            print(lines[-1], flush=True)
    if not arguments.quick:
        (RESULTS / "lynceus_data.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

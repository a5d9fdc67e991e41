"""Data size and epochs at once (`hyperjump_mnist`): auto against Hyperband and BOHB.

`python -m benchmarks.papers.fabulinus_two_fidelities [--seeds 20] [--quick]`. The curve is the true full-fidelity
test error of the recommendation against training seconds; the figure of merit is the area under it (mean error over
the budget, also with time on a log scale from a thousandth of it), lower is better.
"""

from __future__ import annotations

import argparse
import csv
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, data, stamp
from easel.declare.dimensions import DimensionRole, Ordinal, fraction
from easel.declare.goal import minimise
from easel.declare.space import Space, point_key
from easel.records.study import Finished
from easel.tune.tuner import Tuner

BUDGET = 4_000.0
TUNED = ("learning_rate", "momentum", "batch_size", "weight_decay")


def load() -> Job:
    with data("hyperjump_mnist/mnist_size_epoch.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tuned = tuple(Ordinal(name, tuple(sorted({float(r[name]) for r in rows}))) for name in TUNED)
    sizes = tuple(sorted({float(r["s"]) for r in rows}))
    epochs = tuple(sorted({float(r["epoch"]) for r in rows}))
    space = Space((*tuned, fraction("s", sizes), Ordinal("epoch", epochs, role=DimensionRole.FIDELITY)))
    names = (*TUNED, "s", "epoch")
    return Job(
        space,
        {
            point_key(space.check({n: float(r[n]) for n in names})): {
                "error": float(r["test_error"]),
                "time": float(r["train_time_s"]),
            }
            for r in rows
        },
    )


STRATEGIES = ("auto", "hyperband", "bohb", "random")
AXIS = np.geomspace(BUDGET / 1000, BUDGET, 200)


@lru_cache
def the_job() -> Job:
    return load()


def one(strategy: str, seed: int, trials: int = 0) -> dict[str, object]:
    """The best-so-far true error of the recommendation, over `AXIS`."""
    job = the_job()
    tuner = Tuner(job.space, minimise("error", budget={"time": BUDGET}), strategy, seed=seed)
    seconds, errors = [0.0], [0.9]
    for _ in range(trials or (120 if strategy == "auto" else 400)):
        answer = tuner.ask()
        if isinstance(answer, Finished):
            break
        values = job(answer.point)
        tuner.tell(answer.number, values)
        found = tuner.recommend()
        seconds.append(seconds[-1] + values["time"])
        errors.append(errors[-1] if found is None else job(job.space.at_target(found.point))["error"])
    best = np.minimum.accumulate(errors)
    return {"curve": [float(v) for v in best[np.searchsorted(seconds, AXIS, side="right") - 1]]}


def area(curve: np.ndarray) -> float:
    return float(np.trapezoid(curve, AXIS) / (AXIS[-1] - AXIS[0]))


def line(name: str, curves: np.ndarray) -> str:
    areas = np.array([area(c) for c in curves])
    error = areas.std(ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else float("nan")
    return (
        f"| {name} | {len(curves)} | {areas.mean():.4f} ± {error:.4f} | {curves.mean():.4f} | "
        f"{curves[:, -1].mean():.4f} |"
    )


def write(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = [
        "# Two fidelities at once: auto, Hyperband and BOHB on `hyperjump_mnist`",
        "",
        f"`python -m benchmarks.papers.side_by_side --only two_fidelities`; {BUDGET:.0f} training seconds. Best-so-far",
        "full-fidelity test error of the recommendation: its mean over time (the area under the curve, with its standard",
        "error over the seeds), over log time, and at the end.",
        "",
        stamp(),
        "",
        "| strategy | seeds | area | area over log time | error at the end |",
        "|---|---|---|---|---|",
    ]
    figure, axes = plt.subplots(figsize=(6, 4))
    for name in STRATEGIES:
        curves = np.array([r["curve"] for r in rows if r["name"] == name])
        if len(curves):
            lines.append(line(name, curves))
            axes.plot(AXIS, curves.mean(axis=0), label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="training seconds", ylabel="test error at full fidelity, mean"
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "two_fidelities.png", dpi=110)
    text = "\n".join([*lines, "", "![error against time](two_fidelities.png)", ""])
    (RESULTS / "two_fidelities.md").write_text(text, encoding="utf-8")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="one seed and 15 trials, written nowhere")
    arguments = parser.parse_args()
    seeds, trials = (1, 15) if arguments.quick else (arguments.seeds, 0)
    rows: list[dict[str, Any]] = []
    for name in STRATEGIES:
        mine = [{"name": name, **one(name, seed, trials)} for seed in range(seeds)]
        print(line(name, np.array([r["curve"] for r in mine])), flush=True)
        rows += mine
    if not arguments.quick:
        write(rows)


if __name__ == "__main__":
    main()

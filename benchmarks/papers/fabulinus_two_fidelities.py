"""Data size and epochs at once (`hyperjump_mnist`): auto against Hyperband and BOHB.

`python -m benchmarks.papers.fabulinus_two_fidelities [--seeds 10] [--quick]`. The curve is the true full-fidelity
test error of the recommendation against training seconds; the figure of merit is the area under it (mean error over
the budget, also with time on a log scale from a thousandth of it), lower is better.
"""

from __future__ import annotations

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, data, stamp
from easel.declare.dimensions import Ordinal, Role, fraction
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
    space = Space((*tuned, fraction("s", sizes), Ordinal("epoch", epochs, role=Role.FIDELITY)))
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


def curve(job: Job, strategy: str, seed: int, axis: np.ndarray, trials: int) -> np.ndarray:
    tuner = Tuner(job.space, minimise("error", budget={"time": BUDGET}), strategy, seed=seed)
    seconds, errors = [0.0], [0.9]
    for _ in range(trials):
        answer = tuner.ask()
        if isinstance(answer, Finished):
            break
        values = job(answer.point)
        tuner.tell(answer.number, values)
        found = tuner.recommend()
        seconds.append(seconds[-1] + values["time"])
        errors.append(errors[-1] if found is None else job(job.space.at_target(found.point))["error"])
    best = np.minimum.accumulate(errors)
    return best[np.searchsorted(seconds, axis, side="right") - 1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one seed and 15 trials, written nowhere")
    arguments = parser.parse_args()
    job = load()
    axis = np.geomspace(BUDGET / 1000, BUDGET, 200)
    lines = [
        "# Two fidelities at once: auto, Hyperband and BOHB on `hyperjump_mnist`",
        "",
        f"`python -m benchmarks.papers.fabulinus_two_fidelities`; {BUDGET:.0f} training seconds. Best-so-far full-fidelity test",
        "error of the recommendation: its mean over time (the area under the curve), over log time, and at the end.",
        "",
        stamp(),
        "",
        "| strategy | seeds | area | area over log time | error at the end |",
        "|---|---|---|---|---|",
    ]
    figure, axes = plt.subplots(figsize=(6, 4))
    for name in ("auto", "hyperband", "bohb", "random"):
        seeds, trials = (1, 15) if arguments.quick else (arguments.seeds, 120 if name == "auto" else 400)
        curves = np.array([curve(job, name, seed, axis, trials) for seed in range(seeds)])
        area = float(np.mean([np.trapezoid(c, axis) / (axis[-1] - axis[0]) for c in curves]))
        lines.append(f"| {name} | {seeds} | {area:.4f} | {curves.mean():.4f} | {curves[:, -1].mean():.4f} |")
        print(lines[-1], flush=True)
        axes.plot(axis, curves.mean(axis=0), label=name)
    if not arguments.quick:
        axes.set(
            xscale="log", yscale="log", xlabel="training seconds", ylabel="test error at full fidelity, mean"
        )
        axes.legend()
        figure.tight_layout()
        figure.savefig(RESULTS / "two_fidelities.png", dpi=110)
        text = "\n".join([*lines, "", "![error against time](two_fidelities.png)", ""])
        (RESULTS / "two_fidelities.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

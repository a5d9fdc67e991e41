"""Thesis figure 7.1 for the CNN job: maximise accuracy on the full data s.t. cost ≤ $0.10.

`python -m benchmarks.papers.fabulinus_search [--seeds 20] [--strategies ei-c auto …] [--quick]`
Measures the money until the recommendation is, and from then on stays, feasible with at least 95 % of the best
feasible accuracy, and how many recommendations are infeasible. A recommendation is asked for after every trial.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, Trace, data, follow, load, stamp
from easel.declare.goal import maximise

C_MAX = 0.10
RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "ei-c": ("ei-c", {"initial": 4}),
    "ei": ("ei", {"initial": 4}),
    "auto": ("auto", {}),
    "fabulinus": ("fabulinus", {}),
    "fabulinus-paper-kernel": ("fabulinus", {"paper": True, "all_rungs": True, "initial": 4}),
    "fabolas": ("fabolas", {}),
}


def good(job: Job, trace: Trace) -> np.ndarray:
    best = max(v["accuracy"] for k, v in job.measured.items() if dict(k)["s"] == 1.0 and v["cost"] <= C_MAX)
    return (trace.cost <= C_MAX) & (trace.accuracy >= 0.95 * best)


def stays(trace: Trace, ok: np.ndarray) -> float:
    """Money at the first trial after which every recommendation is good; infinite when the last one is not."""
    bad = np.flatnonzero(~ok)
    if not len(bad):
        return float(trace.money[0])
    return float(trace.money[bad[-1] + 1]) if bad[-1] + 1 < len(ok) else float("inf")


def study(job: Job, name: str, seeds: int, budget: float, trials: int) -> dict[str, object]:
    strategy, options = RUNS[name]
    goal = maximise("accuracy", f"cost <= {C_MAX}", budget={"cost": budget})
    traces = [follow(job, goal, strategy, seed, trials=trials, **options) for seed in range(seeds)]
    oks = [good(job, t) for t in traces]
    first = [
        float(t.money[np.argmax(ok)]) if ok.any() else float("inf") for t, ok in zip(traces, oks, strict=True)
    ]
    stay = [stays(t, ok) for t, ok in zip(traces, oks, strict=True)]
    made = sum(int(np.isfinite(t.cost).sum()) for t in traces)
    infeasible = sum(int((t.cost > C_MAX).sum()) for t in traces)
    grid = np.geomspace(0.005, budget, 60)
    curves = []
    for t in traces:
        value = np.where(t.cost <= C_MAX, t.accuracy, 0.0)
        at = np.searchsorted(t.money, grid, side="right") - 1
        curves.append(np.where(at >= 0, value[np.maximum(at, 0)], 0.0))
    return {
        "strategy": name,
        "seeds": seeds,
        "budget": budget,
        "first": float(np.median(first)),
        "stays": float(np.median(stay)),
        "stays_p90": float(np.quantile(stay, 0.9, method="higher")),
        "all_stays": stay,
        "infeasible": infeasible / max(made, 1),
        "trials": float(np.mean([len(t.money) for t in traces])),
        "optimiser_s": float(np.mean([(t.total[-1] - t.seconds[-1]) / len(t.total) for t in traces])),
        "curve": [float(v) for v in np.mean(curves, axis=0)],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=1.5)
    parser.add_argument("--trials", type=int, default=45)
    parser.add_argument("--strategies", nargs="*", default=list(RUNS))
    parser.add_argument("--quick", action="store_true", help="two seeds and 12 trials, written nowhere")
    arguments = parser.parse_args()
    job = load(data("trimtuner/cnn.csv"), extrapolated=False)
    for name in arguments.strategies:
        seeds, trials = (2, 12) if arguments.quick else (arguments.seeds, arguments.trials)
        row = study(job, name, seeds, arguments.budget, trials)
        print({k: v for k, v in row.items() if k not in ("curve", "all_stays")}, flush=True)
        if not arguments.quick:
            RESULTS.mkdir(parents=True, exist_ok=True)
            path = RESULTS / f"fabulinus_cnn_{name}.json"
            path.write_text(json.dumps(row), encoding="utf-8")
    if not arguments.quick:
        report([RESULTS / f"fabulinus_cnn_{name}.json" for name in RUNS])


def report(paths: list[Path]) -> None:
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    reference = next((r["stays"] for r in rows if r["strategy"] == "ei-c"), float("nan"))
    lines = [
        "# Best accuracy on full data for at most $0.10, CNN job (thesis figure 7.1)",
        "",
        "`python -m benchmarks.papers.fabulinus_search`; money until the recommendation is, and stays, feasible with at",
        "least 95 % of the best feasible accuracy. EI_c recommends its best feasible observation, which is never",
        "infeasible; the others recommend what they predict for full data.",
        "",
        stamp(),
        "",
        "| strategy | seeds | first (median) | stays (median) | of EI_c | stays (p90) | infeasible | trials | s per suggestion |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    figure, axes = plt.subplots(figsize=(6.5, 4))
    for r in rows:
        lines.append(
            f"| {r['strategy']} | {r['seeds']} | {r['first']:.3f} | {r['stays']:.3f} | {r['stays'] / reference:.2f} | "
            f"{r['stays_p90']:.3f} | {100 * r['infeasible']:.1f} % | {r['trials']:.0f} | {r['optimiser_s']:.2f} |"
        )
        axes.plot(np.geomspace(0.005, r["budget"], len(r["curve"])), r["curve"], label=r["strategy"])
    axes.set(
        xscale="log",
        xlabel="exploration money ($)",
        ylabel="recommendation's accuracy (0 if infeasible)",
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "fabulinus_cnn.png", dpi=110)
    (RESULTS / "fabulinus_cnn.md").write_text(
        "\n".join([*lines, "", "![money against accuracy](fabulinus_cnn.png)", ""]), encoding="utf-8"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()

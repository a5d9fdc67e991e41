"""Thesis figures 6.10 and 6.13: how much exploration money finds a cheap feasible configuration of the CNN job.

`python -m benchmarks.papers.nephele_search [--seeds 100] [--strategies nephele lynceus …] [--quick]`
Minimise cost s.t. accuracy ≥ 0.85 and time ≤ 300 s, $5 of initial sampling. A study ends at its space's optimum.
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
from easel.declare.goal import minimise

RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "nephele": ("nephele", {}),
    "lynceus": ("lynceus", {}),
    "cherrypick": ("cherrypick", {}),
    "random": ("random", {}),
    "nephele-h1": ("nephele", {"horizon": 1}),
    "nephele-h2": ("nephele", {"horizon": 2, "paths": 32}),
    "nephele-drop": ("nephele-drop", {}),
}
INITIAL = 5.0


def optimum(job: Job, *, full: bool) -> float:
    ok = [
        v["cost"]
        for key, v in job.measured.items()
        if v["accuracy"] >= 0.85 and v["time"] <= 300 and (not full or dict(key)["s"] == 1.0)
    ]
    return min(ok)


def first(trace: Trace, limit: float) -> float:
    """Money spent when a *feasible* recommendation first cost at most `limit`."""
    ok = (trace.cost <= limit * (1 + 1e-9)) & (trace.accuracy >= 0.85) & (trace.time <= 300)
    return float(trace.money[np.argmax(ok)]) if ok.any() else float("inf")


def percentile(values: list[float], q: float) -> float:
    return float(np.quantile(values, q, method="higher"))


def study(job: Job, name: str, seeds: int, budget: float) -> dict[str, object]:
    strategy, options = RUNS[name]
    if strategy != "random":
        options = {**options, "initial_budget": INITIAL}
    goal = minimise("cost", "accuracy >= 0.85", "time <= 300", budget={"cost": budget}, at="any")
    full = strategy in ("lynceus", "cherrypick")
    best, own = optimum(job, full=False), optimum(job, full=full)
    traces = [
        follow(job, goal, strategy, seed, trials=400, until=own * (1 + 1e-9), **options)
        for seed in range(seeds)
    ]
    row: dict[str, object] = {"strategy": name, "seeds": seeds, "budget": budget}
    for cno in (10, 2):
        money = [first(t, cno * best) for t in traces]
        row[f"cno{cno}_p50"], row[f"cno{cno}_p90"] = percentile(money, 0.5), percentile(money, 0.9)
        money = [first(t, cno * own) for t in traces]
        row[f"own{cno}_p90"] = percentile(money, 0.9)
    money = [first(t, own) for t in traces]
    row["optimum_p50"], row["optimum_p90"] = percentile(money, 0.5), percentile(money, 0.9)
    row["found"] = float(np.isfinite(money).mean())
    row["initial_trials"] = float(np.mean([1 + (t.money < INITIAL).sum() for t in traces]))
    row["trials"] = float(np.mean([len(t.money) for t in traces]))
    grid = np.linspace(0, budget, 101)
    curves = []
    for axis in (grid,):
        for t in traces:
            ok = (t.accuracy >= 0.85) & (t.time <= 300)
            cost = np.minimum.accumulate(np.where(ok, t.cost, np.inf))
            at = np.searchsorted(t.money, axis, side="right") - 1
            curves.append(np.where(at >= 0, cost[np.maximum(at, 0)], np.inf) / best)
    row["curve"] = [float(v) for v in np.quantile(curves, 0.9, axis=0, method="higher")]
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--strategies", nargs="*", default=["nephele", "lynceus", "cherrypick", "random"])
    parser.add_argument("--quick", action="store_true", help="three seeds, written nowhere")
    parser.add_argument("--rows", type=Path, default=RESULTS / "nephele_cnn_search.json")
    arguments = parser.parse_args()
    job = load(data("trimtuner/cnn.csv"), extrapolated=True)
    rows: dict[str, dict[str, object]] = {}
    if arguments.rows.exists() and not arguments.quick:
        rows = json.loads(arguments.rows.read_text(encoding="utf-8"))
    for name in arguments.strategies:
        rows[name] = study(job, name, 3 if arguments.quick else arguments.seeds, arguments.budget)
        print({k: v for k, v in rows[name].items() if k != "curve"}, flush=True)
        if not arguments.quick:
            RESULTS.mkdir(parents=True, exist_ok=True)
            arguments.rows.write_text(json.dumps(rows), encoding="utf-8")
    if not arguments.quick:
        report(rows)


def report(rows: dict[str, dict[str, object]]) -> None:
    figure, axes = plt.subplots(figsize=(6.5, 4))
    lines = [
        "# Finding a cheap feasible configuration of the CNN job (thesis figures 6.10, 6.13)",
        "",
        "`python -m benchmarks.papers.nephele_search`; money in $ at the 90th percentile of the seeds,",
        "median in brackets. `inf`: not within the budget.",
        "CNO is the recommendation's cost over the cheapest feasible cost with subsampling ($0.003546); `own` takes the",
        "cheapest in the strategy's own space, which for Lynceus and CherryPick is full data ($0.014498).",
        "",
        stamp(),
        "",
        "| strategy | seeds | initial trials | CNO ≤ 10 | CNO ≤ 2 | own ≤ 2 | own optimum | found within budget |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in rows.items():
        lines.append(
            f"| {name} | {r['seeds']} | {r['initial_trials']:.1f} | {r['cno10_p90']:.2f} ({r['cno10_p50']:.2f}) | "
            f"{r['cno2_p90']:.2f} ({r['cno2_p50']:.2f}) | {r['own2_p90']:.2f} | {r['optimum_p90']:.2f} ({r['optimum_p50']:.2f}) | "
            f"{100 * float(str(r['found'])):.0f} % |"
        )
        curve = np.array(r["curve"], dtype=float)
        axes.step(np.linspace(0, float(str(r["budget"])), len(curve)), curve, where="post", label=name)
    axes.set(yscale="log", ylim=(0.9, 100), xlabel="exploration money ($)", ylabel="CNO, 90th percentile")
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "nephele_cnn_search.png", dpi=110)
    (RESULTS / "nephele_cnn_search.md").write_text(
        "\n".join([*lines, "", "![money against CNO](nephele_cnn_search.png)", ""]), encoding="utf-8"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()

"""Thesis figures 6.10 and 6.13: how much exploration money finds a cheap feasible configuration of the CNN job.

`python -m benchmarks.papers.nephele_search [--seeds 100] [--strategies nephele lynceus …] [--quick]`; on many cores
`python -m benchmarks.papers.side_by_side`.
Minimise cost s.t. accuracy ≥ 0.85 and time ≤ 300 s, $5 of initial sampling. A study ends at its space's optimum.
"""

from __future__ import annotations

import argparse
import json
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, Trace, data, follow, load, pack, stamp, unpack
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
INITIAL, BUDGET = 5.0, 20.0
FULL_ONLY = ("lynceus", "cherrypick")
AXES = {
    "money": "exploration money ($)",
    "seconds": "exploration time (s)",
    "number": "number of explorations",
    "total": "exploration and optimiser time (s)",
}


@lru_cache
def the_job() -> Job:
    return load(data("trimtuner/cnn.csv"), extrapolated=True)


def optimum(job: Job, *, full: bool) -> float:
    ok = [
        v["cost"]
        for key, v in job.measured.items()
        if v["accuracy"] >= 0.85 and v["time"] <= 300 and (not full or dict(key)["s"] == 1.0)
    ]
    return min(ok)


def one(name: str, seed: int) -> dict[str, object]:
    """One study from its start until it has observed the cheapest feasible point of its own space."""
    strategy, options = RUNS[name]
    if strategy != "random":
        options = {**options, "initial_budget": INITIAL}
    goal = minimise("cost", "accuracy >= 0.85", "time <= 300", budget={"cost": BUDGET}, at="any")
    own = optimum(the_job(), full=name in FULL_ONLY)
    return pack(follow(the_job(), goal, strategy, seed, trials=400, until=own * (1 + 1e-9), **options))


def good(trace: Trace) -> np.ndarray:
    return np.asarray((trace.accuracy >= 0.85) & (trace.time <= 300))


def first(trace: Trace, limit: float) -> float:
    """Money spent when a *feasible* recommendation first cost at most `limit`."""
    ok = (trace.cost <= limit * (1 + 1e-9)) & good(trace)
    return float(trace.money[np.argmax(ok)]) if ok.any() else float("inf")


def percentile(values: list[float], q: float) -> float:
    return float(np.quantile(values, q, method="higher"))


def summary(name: str, traces: list[Trace]) -> dict[str, Any]:
    best, own = (optimum(the_job(), full=full) for full in (False, name in FULL_ONLY))
    row: dict[str, Any] = {"strategy": name, "seeds": len(traces), "budget": BUDGET}
    for cno in (10, 2):
        money = [first(t, cno * best) for t in traces]
        row[f"cno{cno}_p50"], row[f"cno{cno}_p90"] = percentile(money, 0.5), percentile(money, 0.9)
        row[f"own{cno}_p90"] = percentile([first(t, cno * own) for t in traces], 0.9)
    money = [first(t, own) for t in traces]
    row["optimum_p50"], row["optimum_p90"] = percentile(money, 0.5), percentile(money, 0.9)
    row["found"] = float(np.isfinite(money).mean())
    row["initial_trials"] = float(np.mean([1 + (t.money < INITIAL).sum() for t in traces]))
    row["trials"] = float(np.mean([len(t.money) for t in traces]))
    row["optimiser_s"] = float(np.mean([(t.total[-1] - t.seconds[-1]) / len(t.total) for t in traces]))
    row["curves"] = {axis: curve(traces, axis, best) for axis in AXES}
    return row


def along(trace: Trace, axis: str) -> np.ndarray:
    return np.arange(1, len(trace.money) + 1) if axis == "number" else np.asarray(getattr(trace, axis))


def curve(traces: list[Trace], axis: str, best: float) -> dict[str, list[float]]:
    """CNO at the 90th percentile of the seeds, along one axis."""
    grid = np.linspace(0, max(float(along(t, axis)[-1]) for t in traces), 101)
    curves = []
    for t in traces:
        cost = np.minimum.accumulate(np.where(good(t), t.cost, np.inf))
        at = np.searchsorted(along(t, axis), grid, side="right") - 1
        curves.append(np.where(at >= 0, cost[np.maximum(at, 0)], np.inf) / best)
    values = np.quantile(curves, 0.9, axis=0, method="higher")
    return {"x": [float(v) for v in grid], "y": [float(v) for v in values]}


def write(rows: list[dict[str, object]]) -> None:
    """The page from collected studies; strategies that nobody collected keep their earlier line."""
    path = RESULTS / "nephele_cnn_search.json"
    kept: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in RUNS:
        traces = [unpack(r) for r in rows if r["name"] == name]
        if traces:
            kept[name] = summary(name, traces)
    kept = {name: kept[name] for name in RUNS if name in kept}
    path.write_text(json.dumps(kept), encoding="utf-8")
    report(kept)


def report(rows: dict[str, dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(11, 7), sharey=True)
    lines = [
        "# Finding a cheap feasible configuration of the CNN job (thesis figures 6.10, 6.13)",
        "",
        "`python -m benchmarks.papers.side_by_side`; money in $ at the 90th percentile of the seeds,",
        "median in brackets. `inf`: not within the budget of $20.",
        "CNO is the recommendation's cost over the cheapest feasible cost with subsampling ($0.003546); `own` takes the",
        "cheapest in the strategy's own space, which for Lynceus and CherryPick is full data ($0.014498).",
        "`nephele-drop` drops poor configurations early; `nephele-h1` and `nephele-h2` look one and two steps ahead.",
        "",
        stamp(),
        "",
        "| strategy | seeds | initial trials | CNO ≤ 10 | CNO ≤ 2 | own ≤ 2 | own optimum | found within budget | s per suggestion |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, r in rows.items():
        lines.append(
            f"| {name} | {r['seeds']} | {r['initial_trials']:.1f} | {r['cno10_p90']:.2f} ({r['cno10_p50']:.2f}) | "
            f"{r['cno2_p90']:.2f} ({r['cno2_p50']:.2f}) | {r['own2_p90']:.2f} | {r['optimum_p90']:.2f} ({r['optimum_p50']:.2f}) | "
            f"{100 * r['found']:.0f} % | {r['optimiser_s']:.3f} |"
        )
        for panel, (axis, label) in zip(panels.flat, AXES.items(), strict=True):
            if "curves" not in r:
                continue  # an earlier run kept its figures only
            panel.step(r["curves"][axis]["x"], r["curves"][axis]["y"], where="post", label=name)
            panel.set(yscale="log", ylim=(0.9, 100), xlabel=label)
    for panel in panels[:, 0]:
        panel.set_ylabel("CNO, 90th percentile")
    panels[0, 0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(RESULTS / "nephele_cnn_search.png", dpi=110)
    (RESULTS / "nephele_cnn_search.md").write_text(
        "\n".join(
            [*lines, "", "![CNO against money, time, number and total time](nephele_cnn_search.png)", ""]
        ),
        encoding="utf-8",
    )
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--strategies", nargs="*", default=["nephele", "lynceus", "cherrypick", "random"])
    parser.add_argument("--quick", action="store_true", help="three seeds, written nowhere")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.strategies:
        mine = [{"name": name, **one(name, s)} for s in range(3 if arguments.quick else arguments.seeds)]
        print(
            {k: v for k, v in summary(name, [unpack(r) for r in mine]).items() if k != "curves"}, flush=True
        )
        rows += mine
    if not arguments.quick:
        write(rows)


if __name__ == "__main__":
    main()

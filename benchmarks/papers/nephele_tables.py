"""Thesis tables 6.2, 6.3 and 7.1 and figures 6.8 and 6.9 for the CNN job: how much of the space is feasible.

`python -m benchmarks.papers.nephele_tables`; needs no optimiser, so there is no quick form.
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, data, load, stamp

A_MIN, T_MAX, C_MAX = 0.85, 300.0, 0.10


def arrays(job: Job) -> dict[str, np.ndarray]:
    """Configurations × data sizes."""
    sizes = job.space["s"].levels(5)
    rows: dict[str, list[list[float]]] = {name: [] for name in ("accuracy", "time", "cost")}
    for point in job.space.grid():
        if point["s"] == sizes[0]:
            for name in rows:
                rows[name].append([job({**point, "s": s})[name] for s in sizes])
    return {name: np.array(values) for name, values in rows.items()}


def cost_reduction(table: dict[str, np.ndarray], a_min: float, t_max: float) -> float:
    """Equation 6.2; NaN where the problem has no solution on full data, which the thesis draws in grey."""
    ok = (table["accuracy"] >= a_min) & (table["time"] <= t_max)
    if not ok[:, -1].any():
        return float("nan")
    full = table["cost"][ok[:, -1], -1].min()
    return float((full - table["cost"][ok].min()) / full)


def main() -> None:
    job = load(data("trimtuner/cnn.csv"), extrapolated=False)
    t = arrays(job)
    sizes = [float(s) for s in job.space["s"].levels(5)]
    accurate, quick = t["accuracy"] >= A_MIN, t["time"] <= T_MAX
    ok = accurate & quick
    lines = [
        "# The CNN job's feasible configurations (thesis tables 6.2, 6.3, 7.1; figures 6.8, 6.9)",
        "",
        "Made by `python -m benchmarks.papers.nephele_tables` from `trimtuner/cnn.csv`. Thesis figures in brackets.",
        "",
        stamp(),
        "",
        f"- Table 6.2: {ok.sum()} of {ok.size} feasible (208), {ok[:, -1].sum()} of {len(ok)} at s = 1 (61).",
        f"- Cheapest feasible: ${t['cost'][ok].min():.6f} at s = {sizes[int(np.argwhere(ok & (t['cost'] == t['cost'][ok].min()))[0, 1])]:g} (0.1); "
        f"at full size ${t['cost'][ok[:, -1], -1].min():.6f}; reduction {100 * cost_reduction(t, A_MIN, T_MAX):.1f} % (75.5 %).",
        f"- Table 7.1: cost ≤ ${C_MAX} at s = 1 holds for {(t['cost'][:, -1] <= C_MAX).sum()} (111), accuracy ≥ 85 % for "
        f"{accurate[:, -1].sum()} (178), both for {(accurate[:, -1] & (t['cost'][:, -1] <= C_MAX)).sum()} (69); "
        f"best accuracy under the limit {t['accuracy'][t['cost'][:, -1] <= C_MAX, -1].max():.5f}.",
        "",
        "Table 6.3: configurations by what they meet at full size (rows) and at the sample (columns); T time, A accuracy.",
        "",
    ]
    kinds = [("T A", True, True), ("– A", False, True), ("T –", True, False), ("– –", False, False)]
    for k, s in enumerate(sizes[:-1]):
        lines += [
            f"| full \\ s = {s:.4g} | " + " | ".join(n for n, _, _ in kinds) + " |",
            "|---|---|---|---|---|",
        ]
        for name, tq, aq in kinds:
            row = (quick[:, -1] == tq) & (accurate[:, -1] == aq)
            cells = [int((row & (quick[:, k] == t2) & (accurate[:, k] == a2)).sum()) for _, t2, a2 in kinds]
            lines.append(f"| {name} | " + " | ".join(str(c) for c in cells) + " |")
        lines.append("")
    lines += [
        "Figure 6.9: feasible configurations by data size",
        "",
        "| s | time | accuracy | both |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {s:.4g} | {quick[:, k].sum()} | {accurate[:, k].sum()} | {ok[:, k].sum()} |"
        for k, s in enumerate(sizes)
    ]
    lines += ["", "![figure 6.8](nephele_cnn_reduction.png)", ""]
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "nephele_cnn_tables.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))

    a_axis, t_axis = np.linspace(0.5, 0.99, 50), np.linspace(20, 600, 59)
    heat = np.array([[cost_reduction(t, a, s) for s in t_axis] for a in a_axis])
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.set_facecolor("0.75")
    mesh = axes.pcolormesh(t_axis, 100 * a_axis, heat, vmin=0, vmax=1, cmap="viridis")
    figure.colorbar(mesh, label="cost reduction by subsampling")
    axes.set(
        xlabel="time limit (s)",
        ylabel="least accuracy (%)",
        title="CNN: what subsampling saves (grey: infeasible on full data)",
    )
    figure.tight_layout()
    figure.savefig(RESULTS / "nephele_cnn_reduction.png", dpi=110)


if __name__ == "__main__":
    main()

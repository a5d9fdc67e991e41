"""Profiling and provisioning against the paper's figures and on real runs.

    python -m benchmarks.provision [--quick] [--runs docs/results/provision_runs.csv] [--pictures FOLDER]

1. The paper's prices and its choice by brute force.
2. Runtime models on measured runs (`benchmarks/provision_measure.py`): the default on half of the grid against the
   paper's log-linear model and a random forest on all of it, on held-out runs.
3. Provisioning against the fixed baseline of 2 vCPU and 7.5 GB: a task that scales as the paper's (t ∝ epochs/cpu),
   and the measured tasks within this machine's 2 vCPU.
4. How long an answer over 496 cells takes.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestRegressor

from benchmarks.provision_measure import MeasuredRun, read_runs
from easel.flow.price.provision import INDIFFERENCE
from easel.price.book import book_named
from easel.price.design import d_optimal, default_size, full_grid
from easel.price.grid import paper_grid, product_grid, span
from easel.price.memory import MemoryModel, learn_memory
from easel.price.picture import draw
from easel.price.provision import Aim, ChosenOffer, Wish, provision, quote
from easel.price.runs import Array, ProfiledRun, RunOutcome, log_features, table
from easel.price.runtime import RuntimeModel, learn, learn_log_linear

ACAI = book_named("acai")
BASELINE = (2.0, 7680.0)


def charge(cpus: float, memory_mb: float, seconds: float) -> float:
    return float(ACAI.charge(ACAI.rate(cpus, memory_mb), seconds))


def papers_prices() -> None:
    print("1. The paper's auto-provisioned prices (its tables 2 and 3)")
    for cpus, memory, minutes, printed in (
        (7.5, 3584, 16.6, "0.08837"),
        (8, 3328, 37.4, "0.21800"),
        (2.5, 512, 52.6, "0.05975"),
        (2.5, 512, 140.4, "0.15949"),
        (2, 7680, 64.6, "0.09765 (baseline)"),
        (2, 7680, 162.2, "0.24519 (baseline)"),
    ):
        ours = charge(cpus, memory, minutes * 60)
        print(f"   {cpus:>4} vCPU {memory:>5} MB {minutes:>6} min: ours {ours:.5f}, paper {printed}")


def features(run: MeasuredRun) -> dict[str, float]:
    return {"steps": run.steps, "rows": run.rows, "cpus": run.cpus, "memory_mb": run.memory_mb}


def profiled(run: MeasuredRun) -> ProfiledRun:
    return ProfiledRun(features(run), RunOutcome.FINISHED, run.wall_s, run.peak_mb)


def r2(truth: Array, predicted: Array) -> float:
    return float(1.0 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def draw_held_out(parts: dict[str, list[tuple[Array, Array, Array]]], file: Path) -> None:
    """Predicted against measured seconds of the held-out runs, one panel a model."""
    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    for axes, (name, tasks) in zip(figure.subplots(1, len(parts), sharey=True), parts.items(), strict=True):
        for task, colour, (truth, predicted, _) in zip(("mlp", "forest"), ("C0", "C1"), tasks, strict=True):
            axes.scatter(truth, predicted, s=12, c=colour, label=task)
        axes.axline((2, 2), (20, 20), color="grey", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="measured, seconds", title=name)
        axes.set_xticks([2, 5, 10, 20], labels=["2", "5", "10", "20"])
        axes.set_yticks([2, 5, 10, 20], labels=["2", "5", "10", "20"])
        axes.minorticks_off()
        axes.title.set_fontsize(9)
    figure.axes[0].set_ylabel("predicted, seconds")
    figure.axes[0].legend()
    figure.savefig(file, dpi=110)


def runtime_models(
    runs: Sequence[MeasuredRun], quick: bool, pictures: Path | None = None
) -> dict[str, RuntimeModel]:
    print("\n2. Held-out runtime on measured runs (R² in seconds; coverage of 90 % intervals)")
    kept: dict[str, RuntimeModel] = {}
    pooled: dict[str, list[tuple[Array, Array, Array]]] = defaultdict(list)
    for task in ("mlp", "forest"):
        profile = sorted(
            (r for r in runs if r.task == task and r.part == "profile" and r.returncode == 0),
            key=lambda r: (r.steps, r.rows, r.cpus, r.memory_mb),
        )
        held = [
            r for r in runs if r.task == task and r.part == "held-out" and r.wall_s > 2 and r.returncode == 0
        ]
        full = [profiled(run) for run in profile]
        cells = [features(run) for run in profile]
        half = [full[i] for i in d_optimal(cells, default_size(cells))]
        X = log_features(("rows", "steps", "cpus", "memory_mb"), [features(run) for run in held])
        truth = np.array([run.wall_s for run in held])
        inside = np.array([run.steps <= max(r.steps for r in profile) for run in held])
        data = table(full)
        forest = RandomForestRegressor(300, random_state=0).fit(np.exp(data.X), np.exp(data.y))
        models = {
            f"default, {len(half)} runs": learn(half),
            f"default, {len(full)} runs": learn(full),
            f"log-linear, {len(full)} runs": learn_log_linear(full),
        }
        if not quick:
            models[f"log-linear, {len(half)} runs"] = learn_log_linear(half)
        kept[task] = models[f"default, {len(half)} runs"]
        spread = f"{truth.min():.1f}–{truth.max():.1f} s"
        print(f"   {task}: {len(profile)} profiling cells, {len(held)} held-out runs of {spread}")
        for name, model in models.items():
            prediction = model.predict_log(X)
            seconds = prediction.seconds
            low, high = prediction.interval(0.9)
            covered = np.asarray((low <= truth) & (truth <= high), dtype=float)
            pooled[name].append((truth, seconds, covered))
            near, far = r2(truth[inside], seconds[inside]), r2(truth[~inside], seconds[~inside])
            print(
                f"     {name:<24} R² {r2(truth, seconds):.4f} (inside {near:.3f}, beyond {far:.3f})"
                f" coverage {covered.mean():.3f}  chose {model.chosen}"
            )
        # What no profile can beat: the same kind of model, shown the held-out runs themselves.
        best = learn([profiled(run) for run in held]).predict_log(X).seconds
        pooled["fitted to the held-out runs"].append((truth, best, np.zeros(len(truth))))
        print(f"     {'fitted to these themselves':<24} R² {r2(truth, best):.4f}: the rest is noise")
        predicted = forest.predict(np.exp(X))
        pooled[f"random forest, {len(full)} runs"].append((truth, predicted, np.zeros(len(truth))))
        print(f"     {f'random forest, {len(full)} runs':<24} R² {r2(truth, predicted):.4f}")
        repeats: dict[tuple[float, ...], list[float]] = defaultdict(list)
        for run in held:
            repeats[tuple(features(run).values())].append(np.log(run.wall_s))
        spreads = [np.var(r, ddof=1) for r in repeats.values() if len(r) > 1]
        if spreads:
            noise = np.sqrt(np.mean(spreads))
            print(f"     the same cell measured twice in a row differs by {noise:.1%} (standard deviation)")
    print("   both tasks together")
    for name, parts in pooled.items():
        truth, predicted, covered = (np.concatenate([part[i] for part in parts]) for i in range(3))
        cover = f" coverage {covered.mean():.3f}" if covered.any() else ""
        print(f"     {name:<24} R² {r2(truth, predicted):.4f}{cover}")
    if pictures is not None:
        shown = [n for n in pooled if n.startswith(("default, 2", "log-linear, 5", "random"))]
        draw_held_out({name: pooled[name] for name in shown}, pictures / "provision_held_out.png")
    return kept


def tables_two_and_three(pictures: Path | None) -> None:
    print("\n3a. A task that scales as the paper's: t = t₁·epochs/cpu, profiled at epochs 1–3 with 5 % noise")
    rng = np.random.default_rng(0)

    def seconds(cell: dict[str, float]) -> float:
        return 64.6 * 60 / 20 * 2 * cell["epoch"] / cell["cpus"]

    runs = [
        ProfiledRun(cell, RunOutcome.FINISHED, seconds(cell) * float(np.exp(0.05 * rng.standard_normal())))
        for cell in full_grid({"epoch": (1.0, 2.0, 3.0)})
    ]
    for kind, model, slack in (
        ("default", learn(runs), INDIFFERENCE),
        ("the paper's model and rule", learn_log_linear(runs), 0.0),
    ):
        for epochs, minutes in ((20, 64.6), (50, 162.2)):
            cost = charge(*BASELINE, minutes * 60)
            priced = quote(paper_grid(), {"epoch": epochs}, model, MemoryModel(None, ()), ACAI)
            for name, wish in (
                ("fixed cost", Wish(Aim.FASTEST, max_cost=cost, indifference=slack)),
                ("fixed time", Wish(Aim.CHEAPEST, max_seconds=minutes * 60, indifference=slack)),
            ):
                answer = provision(priced, wish)
                assert isinstance(answer, ChosenOffer)
                shape = answer.offer.shape
                true = seconds({"epoch": epochs, "cpus": shape.cpus})
                paid = charge(shape.cpus, shape.memory_mb, true)
                print(
                    f"   {kind}, {epochs} epochs, {name}: {shape.cpus:g} vCPU {shape.memory_mb:g} MB,"
                    f" {true / 60:.1f} min, ${paid:.5f}:"
                    f" {minutes * 60 / true:.2f}× as fast, {1 - paid / cost:.1%} saved"
                )
                if pictures is not None and (kind, epochs, name) == ("default", 20, "fixed cost"):
                    (pictures / "provision_grid.png").write_bytes(draw(priced, wish, answer))


def real_tasks(runs: Sequence[MeasuredRun], models: dict[str, RuntimeModel]) -> None:
    print("\n3b. The measured tasks within 2 vCPU, against 2 vCPU and 7.5 GB under the paper's prices")
    for task, model in models.items():
        held = [r for r in runs if r.task == task and r.part == "held-out" and r.returncode == 0]
        memory = learn_memory([profiled(r) for r in runs if r.task == task and r.part == "profile"])
        measured: dict[tuple[int, int, float], list[float]] = defaultdict(list)
        for run in held:
            measured[run.steps, run.rows, run.cpus].append(run.wall_s)
        saved, sped = [], []
        for steps, rows in sorted({(s, r) for s, r, _ in measured}):
            if (steps, rows, 2.0) not in measured:
                continue
            base = float(np.mean(measured[steps, rows, 2.0]))
            cost = charge(*BASELINE, base)
            # Only sizes that were measured, so that the truth is known.
            cpus = [c for c in (0.5, 1.0, 2.0) if (steps, rows, c) in measured]
            grid = product_grid(cpus, span(512, 7680, 256))
            priced = quote(grid, {"steps": steps, "rows": rows}, model, memory, ACAI)
            for aim, wish in (
                (Aim.CHEAPEST, Wish(Aim.CHEAPEST, max_seconds=base * 1.1)),
                (Aim.FASTEST, Wish(Aim.FASTEST, max_cost=cost)),
            ):
                answer = provision(priced, wish)
                if not isinstance(answer, ChosenOffer):
                    continue
                shape = answer.offer.shape
                true = float(np.mean(measured[steps, rows, shape.cpus]))
                if aim is Aim.CHEAPEST:
                    saved.append((1 - charge(shape.cpus, shape.memory_mb, true) / cost, true / base))
                else:
                    sped.append(base / true)
        less, longer = np.mean([s for s, _ in saved]), np.mean([t for _, t in saved])
        print(
            f"   {task}: fixed time (+10 %): saves {less:.1%} on average over {len(saved)} settings,"
            f" at {longer:.2f}× the baseline's time; fixed cost: {np.mean(sped):.2f}× as fast"
        )


def answer_speed(model: RuntimeModel) -> None:
    grid, memory = paper_grid(), MemoryModel(None, ())
    times, used = [], []
    for _ in range(50):
        start, before = time.perf_counter(), time.process_time()
        priced = quote(grid, {"steps": 30, "rows": 2500}, model, memory, ACAI, 0.95)
        provision(priced, Wish(Aim.CHEAPEST, max_seconds=60, confidence=0.95))
        times.append(time.perf_counter() - start)
        used.append(time.process_time() - before)
    middle, worst, cpu = 1e3 * np.median(times), 1e3 * max(times), 1e3 * max(used)
    print(f"\n4. An answer over {len(grid)} cells: median {middle:.1f} ms, worst of 50 {worst:.1f} ms")
    print(f"   (processor time of the worst {cpu:.1f} ms: the rest is waiting for a busy machine)")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--runs", type=Path, default=Path(__file__).parent.parent / "docs/results/provision_runs.csv"
    )
    options.add_argument("--pictures", type=Path)
    options.add_argument("--quick", action="store_true", help="leave out what only fills the table")
    asked = options.parse_args()
    runs = list(read_runs(asked.runs))
    papers_prices()
    models = runtime_models(runs, asked.quick, asked.pictures)
    tables_two_and_three(asked.pictures)
    real_tasks(runs, models)
    answer_speed(models["mlp"])


if __name__ == "__main__":
    main()

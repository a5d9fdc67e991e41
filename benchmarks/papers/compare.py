"""Run policies over repetitions of one setting, in pairs on the same splits; tables and pictures of it."""

from __future__ import annotations

import multiprocessing
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.papers.worlds import Setting, Split, split
from easel.schedule.measure import LossCurve, mean_curve, standard_error, worst_curve
from easel.schedule.policies import named
from easel.schedule.prior import Prior, quality_vector_prior, sample_prior
from easel.schedule.similar import history_priors
from easel.schedule.simulate import World, hindsight, simulate, tenants
from easel.schedule.state import PoolDevice
from easel.schedule.table import ScoreTable

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "schedule"
PANELS_ACROSS = 4
HISTORY_PRIOR = "easel"
"""The policy that brings its own reading of history; the papers' get the papers' prior."""


@dataclass
class Outcome:
    """All runs of one policy in one setting; areas are means over time of the mean loss."""

    policy: str
    curves: list[LossCurve] = field(default_factory=list)
    areas: list[float] = field(default_factory=list)

    @property
    def area(self) -> float:
        return float(np.mean(self.areas))

    def mean(self) -> LossCurve:
        return mean_curve(self.curves, 1.0)

    def worst(self) -> LossCurve:
        return worst_curve(self.curves, 1.0)


@dataclass(frozen=True)
class Protocol:
    """How the runs go. Time is in units of the horizon: 1 is `share` of the cost of everything."""

    devices: int = 1
    unit_cost: bool = False
    share: float | None = None
    users: int | None = None
    history_share: float = 1.0
    ceiling: float = 1.0


PriorOf = Callable[[str, Split], Prior | dict[str, Prior]]


JOBS = int(os.environ.get("EASEL_JOBS", "1"))
"""Repetitions side by side, one process each."""
_task: tuple[Setting, tuple[str, ...], Protocol, PriorOf] | None = None


def prior_for(policy: str, part: Split) -> Prior | dict[str, Prior]:
    """Spearmint* has its squared-exponential kernel, `easel` its own priors, the rest the sample prior."""
    if policy == HISTORY_PRIOR:
        return history_priors(part.history, part.tenants)
    if policy == "spearmint":
        return quality_vector_prior(part.history.quality)
    return sample_prior(part.history.quality)


def compare(
    setting: Setting,
    policies: Sequence[str],
    repetitions: int,
    protocol: Protocol | None = None,
    prior: PriorOf = prior_for,
) -> dict[str, Outcome]:
    """By policy, greedy with hindsight first."""
    global _task
    _task = (setting, tuple(policies), protocol or Protocol(), prior)
    if JOBS == 1:
        runs = [_once(repetition) for repetition in range(repetitions)]
    else:  # forked: a setting holds functions, which cannot be sent
        with multiprocessing.get_context("fork").Pool(JOBS) as pool:
            runs = pool.map(_once, range(repetitions), chunksize=1)
    outcomes = {name: Outcome(name) for name in ("greedy with hindsight", *policies)}
    for found in runs:
        for name, (area, curve) in found.items():
            outcomes[name].areas.append(area)
            outcomes[name].curves.append(curve)
    return outcomes


def _once(repetition: int) -> dict[str, tuple[float, LossCurve]]:
    """One repetition of the task: every policy on the same split."""
    assert _task is not None
    setting, policies, how, prior = _task
    part = split(setting, repetition, how.users)
    if how.history_share < 1.0:
        keep = max(1, round(how.history_share * len(part.history.tenants)))
        part = Split(part.history.rows(range(keep)), part.tenants)
    devices = tuple(PoolDevice(f"d{i}") for i in range(how.devices))
    world = World(part.tenants, devices, unit_cost=how.unit_cost, ceiling=how.ceiling)
    horizon = _horizon(part.tenants, how, setting)
    found: dict[str, tuple[float, LossCurve]] = {}
    for name in ("greedy with hindsight", *policies):
        policy = hindsight(part.tenants) if name == "greedy with hindsight" else named(name, seed=repetition)
        members = tenants(world, prior(name, part))
        run = simulate(world, policy, members, horizon, np.random.default_rng(repetition))
        found[name] = (run.curve.area(horizon), LossCurve(run.curve.time / horizon, run.curve.loss))
    return found


def _horizon(table: ScoreTable, how: Protocol, setting: Setting) -> float:
    share = setting.share if how.share is None else how.share
    total = float(np.isfinite(table.quality).sum()) if how.unit_cost else table.total_cost
    return share * total / how.devices


def speed_up(outcomes: dict[str, Outcome], fast: str, slow: str, loss: float) -> float:
    """How much sooner `fast` reaches the mean loss than `slow`."""
    grids = {p: mean_curve(outcomes[p].curves, 1.0, 40_000) for p in (fast, slow)}
    return grids[slow].reaches(loss) / max(grids[fast].reaches(loss), 1.0 / 40_000)


def excess(outcomes: dict[str, Outcome], policy: str, rivals: Sequence[str]) -> tuple[float, str, float]:
    """(excess of `policy` over greedy with hindsight / that of the best rival, that rival, paired s.e. of the gap)."""
    best = min(rivals, key=lambda p: outcomes[p].area)
    floor = outcomes["greedy with hindsight"].area
    ratio = (outcomes[policy].area - floor) / (outcomes[best].area - floor)
    gap = np.array(outcomes[policy].areas) - np.array(outcomes[best].areas)
    return ratio, best, standard_error(list(gap))


def table_of(outcomes: dict[str, Outcome]) -> str:
    lines = [
        "| policy | area under the mean loss | s.e. | loss at the end | worst at the end |",
        "|---|---|---|---|---|",
    ]
    for name, o in sorted(outcomes.items(), key=lambda item: item[1].area):
        lines.append(
            f"| {name} | {o.area:.4f} | {standard_error(o.areas):.4f} "
            f"| {o.mean().loss[-1]:.4f} | {o.worst().loss[-1]:.4f} |"
        )
    return "\n".join(lines)


def picture(panels: dict[str, dict[str, Outcome]], name: str, x_label: str, worst: bool = False) -> Path:
    """One panel per setting: mean loss over time (and below it the worst), logarithmic in loss."""
    rows = 2 if worst else 1
    across = min(len(panels), PANELS_ACROSS)
    down = rows * -(-len(panels) // across)
    first = list(next(iter(panels.values())))
    figure, axes = plt.subplots(down, across, figsize=(4.6 * across, 3.6 * down), squeeze=False)
    for number, (title, outcomes) in enumerate(panels.items()):
        for row in range(rows):
            axis = axes[rows * (number // across) + row][number % across]
            for policy, o in outcomes.items():
                curve = o.worst() if row else o.mean()
                style = {"greedy with hindsight": "k:", "easel": "k-"}.get(policy, "-")
                width = 2.4 if policy == "easel" else 1.4
                axis.plot(
                    curve.time * 100, np.maximum(curve.loss, 1e-5), style, label=policy, linewidth=width
                )
            axis.set_yscale("log")
            axis.set_ylim(bottom=5e-4)
            axis.set_title(title if not row else f"{title}, worst run")
            axis.set_xlabel(x_label)
            axis.set_ylabel("accuracy loss")
            axis.grid(alpha=0.3)
            if not number or list(outcomes) != first:
                axis.legend(fontsize=7)
    return _save(figure, name)


def _save(figure: Figure, name: str) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.png"
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return path


def write(name: str, title: str, command: str, body: str) -> None:
    """One page under docs/results/schedule, with what it was made by."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    machine = f"{platform.machine()}, one core, Python {platform.python_version()}"
    made = f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine}"
    (RESULTS / f"{name}.md").write_text(f"# {title}\n\nMade by {made}.\n\n{body}\n")

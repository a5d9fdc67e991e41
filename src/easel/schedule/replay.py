"""Replay a pool's own history under other policies and other numbers of devices: how many should we buy?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.schedule.bound import least_loss
from easel.schedule.measure import LossCurve, mean_curve
from easel.schedule.policies import Policy, named
from easel.schedule.similar import history_priors
from easel.schedule.simulate import HINDSIGHT, World, hindsight, simulate, tenants
from easel.schedule.state import PoolDevice
from easel.schedule.table import ScoreTable

BOUND = "bound"
"""What no schedule can beat (`least_loss`), given for costs that are known."""


@dataclass(frozen=True)
class ReplaySettings:
    """What to replay. Each repetition draws `serve` tenants to serve; the others are what was known before.

    The horizon is the time that one device needs for `share` of everything the served tenants could run,
    whatever the number of devices: curves of pools of all sizes share one axis. Times are in the table's
    unit of cost.
    """

    policies: tuple[str, ...] = ("easel",)
    devices: tuple[int, ...] = (1,)
    serve: int = 10
    share: float = 0.1
    repetitions: int = 10
    seed: int = 0
    failures: float = 0.0
    cost_noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Replay:
    """The mean over repetitions of the mean loss, for one policy on one number of devices."""

    policy: str
    devices: int
    curve: LossCurve
    horizon: float

    @property
    def area(self) -> float:
        """Mean loss over the horizon."""
        return self.curve.area(self.horizon)


def replay(table: ScoreTable, plan: ReplaySettings) -> list[Replay]:
    """One `Replay` per policy and number of devices, then greedy with hindsight and the bound."""
    n = len(table.tenants)
    if n < 2:
        raise InvalidInput(
            f"{n} tenant(s) in the history: at least two are needed, one to serve and one before"
        )
    if min(plan.devices) < 1 or not 0.0 < plan.share <= 1.0 or plan.repetitions < 1 or plan.serve < 1:
        raise InvalidInput("devices, tenants to serve and repetitions start at 1; share lies in (0, 1]")
    serve = min(plan.serve, n - 1)
    found: dict[tuple[str, int], list[LossCurve]] = {}
    horizons = []
    for repetition in range(plan.repetitions):
        order = np.random.default_rng([plan.seed, repetition]).permutation(n)
        served, before = table.rows(order[:serve]), table.rows(order[serve:])
        priors = history_priors(before, served)
        horizon = plan.share * served.total_cost
        if horizon <= 0.0:
            raise InvalidInput(
                "nothing in the history has a quality and a cost above zero: nothing to replay"
            )
        horizons.append(horizon)
        for name, count, policy in _cases(plan, served, repetition):
            pool = tuple(PoolDevice(f"d{i}") for i in range(count))
            world = World(
                served,
                pool,
                failures=plan.failures,
                cost_noise=plan.cost_noise,
                ceiling=_ceiling(table),
            )
            rng = np.random.default_rng([plan.seed, repetition, count])
            run = simulate(world, policy, tenants(world, priors), horizon, rng)
            # on a common axis: shares of this repetition's horizon
            found.setdefault((name, count), []).append(LossCurve(run.curve.time / horizon, run.curve.loss))
        for count in plan.devices if plan.cost_noise == 0.0 else ():
            world = World(served, tuple(PoolDevice(f"d{i}") for i in range(count)))
            least = least_loss(world, horizon)
            found.setdefault((BOUND, count), []).append(LossCurve(least.time / horizon, least.loss))
    length = float(np.mean(horizons))
    return [
        Replay(name, count, LossCurve(mean.time * length, mean.loss), length)
        for (name, count), curves in found.items()
        for mean in [mean_curve(curves, 1.0)]
    ]


def _cases(plan: ReplaySettings, served: ScoreTable, seed: int) -> Iterator[tuple[str, int, Policy]]:
    for name in dict.fromkeys((*plan.policies, HINDSIGHT)):
        for count in plan.devices:
            yield name, count, hindsight(served) if name == HINDSIGHT else named(name, seed)


def _ceiling(table: ScoreTable) -> float:
    """Qualities that all lie in [0, 1] are taken for accuracies: none can be above 1."""
    known = table.quality[np.isfinite(table.quality)]
    inside = len(known) > 0 and known.min() >= 0.0 and known.max() <= 1.0
    return 1.0 if inside else np.inf


def draw(replays: Sequence[Replay], path: Path) -> None:
    """The mean loss over time, one line per policy and number of devices, as a picture at `path`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 5))
    colours = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(r.policy for r in replays))}
    widths = {count: 1.0 + 0.7 * i for i, count in enumerate(sorted({r.devices for r in replays}))}
    for r in replays:
        axis.plot(
            r.curve.time,
            np.maximum(r.curve.loss, 1e-5),
            color="k" if r.policy in (HINDSIGHT, BOUND) else colours[r.policy],
            linestyle={HINDSIGHT: ":", BOUND: "--"}.get(r.policy, "-"),
            linewidth=widths[r.devices],
            label=f"{r.policy}, {counted(r.devices, 'device')}",
        )
    axis.set_yscale("log")
    axis.set_xlabel("time (in the history's unit of cost)")
    axis.set_ylabel("mean accuracy loss")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)

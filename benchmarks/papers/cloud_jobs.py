"""The thesis's CNN job as a table: its space with prices, and a study that looks measurements up in it.

The file is `trimtuner/cnn.csv` of the evaluation data (`EASEL_DATA`, or `../shared/data`). The Nephele chapter used
times extrapolated beyond the 600 s at which runs were cut (`*_nephele_*`), the Fabulinus chapter the measured ones.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from easel.declare.dimensions import Categorical, DimensionRole, Ordinal, fraction
from easel.declare.goal import Goal
from easel.declare.rates import Rates, Term
from easel.declare.space import Point, PointKey, Space, point_key
from easel.records.study import Finished
from easel.tune.tuner import Tuner

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FLAVOURS = {
    "t2.small": (0.023, 1),
    "t2.medium": (0.0464, 2),
    "t2.xlarge": (0.1856, 4),
    "t2.2xlarge": (0.3712, 8),
}


def stamp() -> str:
    """When and where, for a result's page."""
    day = datetime.now(UTC).date()
    return f"Run on {day:%d %B %Y}; {platform.machine()}, {os.cpu_count()} shared cores, Python {platform.python_version()}."


def data(name: str) -> Path:
    """The file's path; says so and ends the program where the evaluation data is absent."""
    folder = Path(os.environ.get("EASEL_DATA", ROOT / ".." / "shared" / "data"))
    if not (folder / name).exists():
        folder = ROOT / ".." / ".." / "shared" / "data"
    path = folder / name
    if not path.exists():
        print(f"SKIPPED: {path} is absent; set EASEL_DATA to the folder with the evaluation data")
        sys.exit(0)
    return path


def cloud_space(learning_rates: tuple[float, ...], sizes: tuple[float, ...]) -> Space:
    """4 machine types × 6 core counts × rates × 2 batch sizes × 2 modes × data sizes.

    Price per hour: one machine per `vcpus` cores and one parameter server, all of the flavour, plus a bookkeeper.
    """
    per_core = {name: price / vcpus for name, (price, vcpus) in FLAVOURS.items()}
    return Space(
        (
            Categorical("vm_flavor", tuple(FLAVOURS), role=DimensionRole.RESOURCE),
            Ordinal("n_cores", (8, 16, 32, 48, 64, 80), role=DimensionRole.RESOURCE),
            Ordinal("learning_rate", learning_rates),
            Ordinal("batch_size", (16, 256)),
            Categorical("synchronism", ("sync", "async")),
            fraction("s", sizes),
        ),
        rates=Rates(
            (
                Term(by="vm_flavor", table=per_core, times=("n_cores",)),
                Term(by="vm_flavor", table={name: price for name, (price, _) in FLAVOURS.items()}),
            ),
            base=0.3712,
        ),
    )


@dataclass(frozen=True)
class Job:
    space: Space
    measured: dict[PointKey, dict[str, float]]

    def __call__(self, point: Point) -> dict[str, float]:
        return self.measured[point_key(self.space.check(point))]


def load(path: Path, *, extrapolated: bool) -> Job:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rates = tuple(sorted({float(r["learning_rate"]) for r in rows}))
    sizes = tuple(sorted({float(r["s"]) for r in rows}))
    space = cloud_space(rates, sizes)
    time, cost = ("time_nephele_s", "cost_nephele_usd") if extrapolated else ("time_s", "cost_usd")
    measured = {}
    for r in rows:
        point = {
            "vm_flavor": r["vm_flavor"],
            "n_cores": int(r["n_cores"]),
            "learning_rate": float(r["learning_rate"]),
            "batch_size": int(r["batch_size"]),
            "synchronism": r["synchronism"],
            "s": float(r["s"]),
        }
        measured[point_key(space.check(point))] = {
            "accuracy": float(r["accuracy"]),
            "time": float(r[time]),
            "cost": float(r[cost]),
        }
    return Job(space, measured)


@dataclass(frozen=True)
class Trace:
    """One study, a row per trial: money, seconds, seconds with the optimiser's own, and the recommendation's values.

    `accuracy` and `cost` are the true ones of the recommendation at that moment, NaN while there is none.
    """

    money: np.ndarray
    seconds: np.ndarray
    total: np.ndarray
    accuracy: np.ndarray
    cost: np.ndarray
    time: np.ndarray


def pack(trace: Trace) -> dict[str, object]:
    """As JSON; NaN, while there is no recommendation, is null."""
    return {
        f.name: [None if np.isnan(v) else float(v) for v in getattr(trace, f.name)] for f in fields(trace)
    }


def unpack(row: Mapping[str, Any]) -> Trace:
    return Trace(*(np.array(row[f.name], dtype=float) for f in fields(Trace)))


def follow(
    job: Job, goal: Goal, strategy: str, seed: int, *, trials: int, until: float = 0.0, **options: object
) -> Trace:
    """Run a study against the table. It ends early once an observed recommendation costs at most `until`."""
    import time as wall

    tuner = Tuner(job.space, goal, strategy, seed=seed, options=options)
    rows: list[tuple[float, ...]] = []
    money = seconds = own = 0.0
    while len(rows) < trials:
        began = wall.process_time()
        answer = tuner.ask()
        own += wall.process_time() - began
        if isinstance(answer, Finished):
            break
        values = job(answer.point)
        tuner.tell(answer.number, values)
        money += values["cost"]
        seconds += values["time"]
        found = tuner.recommend()
        true = job(found.point) if found is not None else {"accuracy": np.nan, "cost": np.nan, "time": np.nan}
        rows.append((money, seconds, seconds + own, true["accuracy"], true["cost"], true["time"]))
        if found is not None and found.observed is not None and true["cost"] <= until:
            break
    return Trace(*np.array(rows).T)

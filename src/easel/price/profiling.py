"""A profile from start to end, as decisions: which runs to make, what they may cost, when to stop waiting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from easel.errors import InvalidInput
from easel.price.book import PriceBook
from easel.price.design import CPUS, MEMORIES_MB, NO_GPU, d_optimal, default_size, full_grid
from easel.price.grid import ANY_GPU, ON_CPU, ResourceShape
from easel.price.runs import GPUS
from easel.price.runtime import FEWEST_RUNS, RuntimeModel
from easel.price.template import CommandTemplate

ENOUGH = 0.95
"""Fitting starts when this share of the runs is done (ACAI §4.2.2)."""
MOST_RUNS = 2000


class Design(StrEnum):
    OPTIMAL = "optimal"
    FULL = "full"


@dataclass(frozen=True)
class PlannedRun:
    """One run to be made: its features, its command, and the most it can cost (at the time limit)."""

    features: Mapping[str, float]
    command: str
    shape: ResourceShape
    most_cost: float
    likely_cost: float | None


@dataclass(frozen=True)
class ProfilePlan:
    """The runs in the order in which to submit them. `grid_size` is what the full design would have taken."""

    runs: tuple[PlannedRun, ...]
    grid_size: int
    dropped: int = 0

    @property
    def most_cost(self) -> float:
        return sum(run.most_cost for run in self.runs)

    @property
    def likely_cost(self) -> float | None:
        """Returns the cost by an earlier profile of the same template; None the first time."""
        known = [run.likely_cost for run in self.runs if run.likely_cost is not None]
        return sum(known) if known and len(known) == len(self.runs) else None


def plan(
    template: CommandTemplate,
    book: PriceBook,
    time_limit_s: float,
    *,
    cpus: Sequence[float] = CPUS,
    memories_mb: Sequence[float] = MEMORIES_MB,
    gpus: Sequence[float] = NO_GPU,
    inputs_mb: Sequence[float] = (),
    design: Design = Design.OPTIMAL,
    size: int | None = None,
    budget: float | None = None,
    earlier: RuntimeModel | None = None,
) -> ProfilePlan:
    """The profiling runs with their prices. A `budget` caps what the runs can cost at most: the optimal design is
    made smaller until it fits, the full one is refused.
    """
    if not (math.isfinite(time_limit_s) and time_limit_s > 0):
        raise InvalidInput(
            "give every profiling run a positive time limit: it bounds what the profile can cost"
        )
    levels: dict[str, Sequence[float]] = {hint.name: hint.values for hint in template.hints}
    if len(inputs_mb) > 1:
        levels["input_mb"] = inputs_mb
    grid = full_grid(levels, cpus, memories_mb, gpus)
    if len(grid) > MOST_RUNS:
        raise InvalidInput(f"the grid has {len(grid)} cells, more than {MOST_RUNS}: list fewer values")
    runs = [_planned(template, cell, book, time_limit_s, earlier) for cell in grid]
    if design is Design.FULL:
        made = ProfilePlan(tuple(runs), len(grid))
        if budget is not None and made.most_cost > budget:
            raise InvalidInput(
                f"the full grid of {len(grid)} runs can cost {made.most_cost:.4f}, over the budget of {budget:.4f}:"
                " use the optimal design, a shorter time limit, or fewer values"
            )
        return made
    wanted = default_size(grid) if size is None else size
    # One run tells how the machine differs from that of an earlier profile; without one, less teaches nothing.
    fewest = 1 if earlier is not None else min(FEWEST_RUNS, wanted)
    for count in range(wanted, fewest - 1, -1):
        chosen = d_optimal(grid, count, price=[run.likely_cost or run.most_cost for run in runs])
        made = ProfilePlan(tuple(runs[i] for i in chosen), len(grid), dropped=wanted - count)
        if budget is None or made.most_cost <= budget:
            return made
    cheapest = sum(sorted(run.most_cost for run in runs)[:fewest])
    raise InvalidInput(
        f"the budget of {budget} is too small to learn from: the fewest runs that teach something are {fewest},"
        f" and can cost {cheapest:.4g}"
    )


def _planned(
    template: CommandTemplate,
    cell: Mapping[str, float],
    book: PriceBook,
    time_limit_s: float,
    earlier: RuntimeModel | None,
) -> PlannedRun:
    count = cell.get(GPUS, 0.0)
    shape = ResourceShape(cell["cpus"], cell["memory_mb"], ANY_GPU if count else ON_CPU, count)
    rate = book.rate(shape.cpus, shape.memory_mb, book.gpu_kind(shape.device), count)
    likely = None
    if earlier is not None and set(earlier.names) == set(cell):
        seconds = np.minimum(earlier.predict([cell]).seconds, time_limit_s)
        likely = float(book.charge(rate, seconds)[0])
    command = template.command({name: cell[name] for name in template.names})
    return PlannedRun(cell, command, shape, float(book.charge(rate, time_limit_s)), likely)


class RunState(StrEnum):
    """All that the profiler needs to know of a job's life."""

    GOING = "going"
    DONE = "done"


@dataclass(frozen=True)
class KeepWaiting:
    left: int


@dataclass(frozen=True)
class FitNow:
    """Kill the `stragglers`, then fit."""

    stragglers: tuple[str, ...]


def progress(states: Mapping[str, RunState]) -> KeepWaiting | FitNow:
    """Wait until 95 % of the runs have ended, however they ended; the rest are stragglers."""
    going = tuple(job for job, state in states.items() if state is RunState.GOING)
    needed = math.ceil(ENOUGH * len(states) - 1e-9)
    done = len(states) - len(going)
    return FitNow(going) if done >= needed else KeepWaiting(needed - done)

"""Auto-provisioning: predict and price every cell of a grid, drop those that break a limit, take the best
(§4.2.4).

Limits bind at a confidence level: with 0.95 a cell is kept when its run ends in time, and stays within the
budget, with 95 % probability. Without one the medians bind, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput
from easel.price.book import PriceBook, Spot
from easel.price.grid import Grid, ResourceShape
from easel.price.memory import MemoryModel
from easel.price.runs import GPUS, Array, Flags, to_logarithms
from easel.price.runtime import Prediction, RuntimeModel

SPOT_DRAWS = 400
"""Runs that are played with their interruptions."""


class Aim(StrEnum):
    CHEAPEST = "cheapest"
    FASTEST = "fastest"


@dataclass(frozen=True)
class Wish:
    """What the user wants: the cheapest or the fastest run within limits that may be absent.

    `max_seconds` counts from now, so the queue's expected wait comes off it; waiting is not paid for.
    Times (or costs) within the share `indifference` of the best count as equal, and the cheaper (or faster) of them
    is taken: nobody pays a fifth more for a second. The paper's rule is 0.
    """

    aim: Aim
    max_seconds: float | None = None
    max_cost: float | None = None
    confidence: float | None = None
    indifference: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("time", self.max_seconds), ("cost", self.max_cost)):
            if value is not None and not value >= 0.0:
                raise InvalidInput(f"a maximum {name} of {value}: give a number that is not negative")
        if self.confidence is not None and not 0.5 <= self.confidence < 1.0:
            raise InvalidInput(
                f"a confidence of {self.confidence}: give at least 0.5 and less than 1, such as 0.95"
            )


@dataclass(frozen=True)
class Offer:
    """One cell: expected seconds with their 90 % interval, the price, and the values that limits were held
    against.

    `sure_seconds` include the wait. `extrapolated` names resources and arguments outside what was profiled.
    """

    shape: ResourceShape
    seconds: float
    low_seconds: float
    high_seconds: float
    cost: float
    sure_seconds: float
    sure_cost: float
    per_hour: float
    extrapolated: tuple[str, ...] = ()
    wait_seconds: float = 0.0
    """How long it waits for a device, in the middle of what is to be expected."""


@dataclass(frozen=True)
class Alternative:
    """A cell that breaks a limit, and what the limits would have to be for it."""

    offer: Offer
    remedy: str


@dataclass(frozen=True)
class ChosenOffer:
    offer: Offer


@dataclass(frozen=True)
class Infeasible:
    """Nothing keeps all limits; `nearest` are at most three ways out, the smallest concession first."""

    why: str
    nearest: tuple[Alternative, ...]


@dataclass(frozen=True)
class Quote:
    """The whole grid priced: arrays `(m,)`. `fits` says where memory suffices, `sure_*` are what limits bind
    on.
    """

    grid: Grid
    arguments: Mapping[str, float]
    seconds: Array
    low: Array
    high: Array
    cost: Array
    sure_seconds: Array
    sure_cost: Array
    per_hour: Array
    fits: Flags
    model: RuntimeModel
    wait: Array

    def allowed(self, wish: Wish) -> Flags:
        """Cells with enough memory that keep both limits."""
        ok = self.fits.copy()
        if wish.max_seconds is not None:
            ok &= self.sure_seconds <= wish.max_seconds * (1 + 1e-12)
        if wish.max_cost is not None:
            ok &= self.sure_cost <= wish.max_cost * (1 + 1e-12)
        return ok

    def offer(self, i: int) -> Offer:
        shape = self.grid.shape(i)
        row = {**self.arguments, "cpus": shape.cpus, "memory_mb": shape.memory_mb, GPUS: shape.gpus}
        return Offer(
            shape,
            float(self.seconds[i]),
            float(self.low[i]),
            float(self.high[i]),
            float(self.cost[i]),
            float(self.sure_seconds[i]),
            float(self.sure_cost[i]),
            float(self.per_hour[i]),
            self.model.beyond(row),
            float(self.wait[i]),
        )


def quote(
    grid: Grid,
    arguments: Mapping[str, float],
    model: RuntimeModel,
    memory: MemoryModel,
    book: PriceBook,
    confidence: float | None = None,
    wait_s: float | Array = 0.0,
) -> Quote:
    """Predicts and prices every cell at once. Spot prices count the interruptions that are to be expected.

    `wait_s` is the time in the queue: one number, one by cell `(m,)`, or draws of it by cell `(m, s)`. With draws
    `sure_seconds` is the quantile of wait and run together, which is less than the sum of both quantiles.
    """
    columns = {**{name: np.full(len(grid), value) for name, value in arguments.items()}}
    columns |= {"cpus": grid.cpus, "memory_mb": grid.memory_mb, GPUS: grid.gpu_counts}
    missing = [name for name in model.names if name not in columns]
    if missing:
        raise InvalidInput(f"the profile also needs {', '.join(missing)}: give a value for each")
    X = np.column_stack([columns[name] for name in model.names])
    prediction = model.predict_log(to_logarithms(model.names, X))
    low, high = prediction.interval(0.9)
    seconds = prediction.seconds
    sure = seconds if confidence is None else prediction.quantile(confidence)
    paid, sure_paid = seconds, sure
    waits = np.asarray(wait_s, float)
    if isinstance(book.terms, Spot):
        elapsed, on_device = book.terms.play(_draws(prediction, SPOT_DRAWS), np.random.default_rng(0))
        low, high = (np.quantile(elapsed, level, axis=1) for level in (0.05, 0.95))
        seconds, paid = book.terms.stretch(seconds), book.terms.paid(seconds)
        level = 0.5 if confidence is None else confidence
        sure, sure_paid = (np.quantile(t, level, axis=1, method="higher") for t in (elapsed, on_device))
        if confidence is None:
            sure, sure_paid = seconds, paid
        wait, until = _with_wait(waits, elapsed, sure, confidence, len(grid))
    else:
        runs = _draws(prediction, waits.shape[1]) if waits.ndim == 2 else np.zeros((len(grid), 1))
        wait, until = _with_wait(waits, runs, sure, confidence, len(grid))
    per_hour = book.rate(grid.cpus, grid.memory_mb, book.gpu_kind(grid.device), grid.gpu_counts)
    fits = memory.enough(arguments, grid.memory_mb, max(confidence or 0.0, 0.9))
    return Quote(
        grid,
        dict(arguments),
        seconds,
        low,
        high,
        book.charge(per_hour, paid),
        until,
        book.charge(per_hour, sure_paid),
        per_hour,
        fits,
        model,
        wait,
    )


def side_by_side(priced: Sequence[Quote], labels: Sequence[str]) -> Quote:
    """Returns several quotes of one command, each on devices with other terms, as one to choose from."""
    if len(priced) == 1 and not labels[0]:
        return priced[0]
    grids = [one.grid for one in priced]
    gpus = None if all(g.gpus is None for g in grids) else np.concatenate([g.gpu_counts for g in grids])
    grid = Grid(
        np.concatenate([g.cpus for g in grids]),
        np.concatenate([g.memory_mb for g in grids]),
        grids[0].device,
        gpus,
        tuple(label for g, label in zip(grids, labels, strict=True) for _ in range(len(g))),
    )
    arrays = ("seconds", "low", "high", "cost", "sure_seconds", "sure_cost", "per_hour", "fits", "wait")
    joined: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in priced]) for name in arrays}
    return replace(priced[0], grid=grid, **joined)


def _draws(prediction: Prediction, count: int) -> Array:
    """`(m, count)` runtimes over their whole distribution, in an order of its own."""
    levels = (np.random.default_rng(0).permutation(count) + 0.5) / count
    return np.column_stack([prediction.quantile(float(level)) for level in levels])


def _with_wait(
    wait: Array, runs: Array, sure: Array, confidence: float | None, cells: int
) -> tuple[Array, Array]:
    """The median wait `(m,)`, and by when a run ends `(m,)` with `confidence`, or in the middle without.

    `runs` `(m, r)` are draws of the time from start to end, in no order.
    """
    if wait.ndim < 2:
        each = np.broadcast_to(wait, (cells,))
        return each, sure + each
    middle = np.quantile(wait, 0.5, axis=1, method="higher")
    if confidence is None or not wait.any():
        return middle, sure + middle
    both = np.resize(np.arange(wait.shape[1]), max(runs.shape[1], wait.shape[1]))
    together = wait[:, both] + runs[:, np.resize(np.arange(runs.shape[1]), len(both))]
    return middle, np.maximum(np.quantile(together, confidence, axis=1, method="higher"), sure)


def provision(priced: Quote, wish: Wish) -> ChosenOffer | Infeasible:
    """The best cell that keeps the limits. Ties go to the cheaper (or faster) one, then to the smaller
    one.
    """
    ok = priced.allowed(wish)
    if ok.any():
        return ChosenOffer(priced.offer(best(priced, np.flatnonzero(ok), wish.aim, wish.indifference)))
    return _infeasible(priced, wish)


def best(priced: Quote, cells: npt.NDArray[np.intp], aim: Aim, indifference: float = 0.0) -> int:
    """The index of the best of `cells`. Times within a millisecond and costs within a millionth count as equal."""
    time, cost = np.round(priced.seconds[cells], 3), np.round(priced.cost[cells], 6)
    first, second = (cost, time) if aim is Aim.CHEAPEST else (time, cost)
    first = np.where(first <= first.min() * (1.0 + indifference), first.min(), first)
    size = (priced.grid.memory_mb[cells], priced.grid.cpus[cells])
    return int(cells[np.lexsort((*size, second, first))[0]])


def front(priced: Quote) -> list[Offer]:
    """The cells that no other beats in both time and cost, fastest first."""
    cells = np.flatnonzero(priced.fits)
    order = cells[np.lexsort((priced.sure_cost[cells], priced.sure_seconds[cells]))]
    kept, cheapest = [], np.inf
    for i in order:
        if priced.sure_cost[i] < cheapest - 1e-12:
            kept.append(priced.offer(int(i)))
            cheapest = float(priced.sure_cost[i])
    return kept


ABOUT_EQUAL = 0.05
"""Sizes whose times differ by less than this share are about equally fast."""


def worth_choosing(offers: Sequence[Offer], indifference: float = ABOUT_EQUAL) -> list[Offer]:
    """Returns of a front, fastest first, the cheapest of those that are about equally fast."""
    kept: list[Offer] = []
    fastest = 0.0
    for offer in offers:
        if kept and offer.sure_seconds <= fastest * (1.0 + indifference):
            kept[-1] = offer
        else:
            kept.append(offer)
            fastest = offer.sure_seconds
    return kept


def _infeasible(priced: Quote, wish: Wish) -> Infeasible:
    cells = np.flatnonzero(priced.fits)
    if not len(cells):
        return Infeasible("every size in the grid is too small for the memory that this run needs", ())
    time, cost = priced.sure_seconds[cells], priced.sure_cost[cells]
    late = np.zeros(len(cells)) if wish.max_seconds is None else _excess(time, wish.max_seconds)
    dear = np.zeros(len(cells)) if wish.max_cost is None else _excess(cost, wish.max_cost)
    reasons = []
    if wish.max_seconds is not None and (late > 0).all():
        reasons.append(
            f"even the fastest size needs {at_least(time.min())} s of the {wish.max_seconds:g} s allowed"
        )
    if wish.max_cost is not None and (dear > 0).all():
        reasons.append(
            f"even the cheapest size costs {at_least(cost.min())} of the {wish.max_cost:g} allowed"
        )
    why = (
        "; ".join(reasons) or "sizes that are fast enough cost too much, and those cheap enough are too slow"
    )
    picks = [
        int(np.lexsort((dear + late, np.maximum(late, dear)))[0]),
        int(np.lexsort((cost, late))[0]),
        int(np.lexsort((time, dear))[0]),
    ]
    nearest = []
    for pick in dict.fromkeys(picks):
        asks = [f"allow {at_least(time[pick])} s"] if late[pick] > 0 else []
        asks += [f"allow {at_least(cost[pick])}"] if dear[pick] > 0 else []
        nearest.append(Alternative(priced.offer(int(cells[pick])), " and ".join(asks)))
    return Infeasible(why, tuple(nearest))


def at_least(value: float) -> str:
    """Three digits, rounded up: whoever allows this much is let through."""
    if value <= 0.0:
        return "0"
    if value >= 1000.0:
        return f"{math.ceil(value)}"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    rounded = math.ceil(value / step * (1 - 1e-12)) * step
    return f"{rounded:.3g}" if rounded < 1000.0 else "1000"


def _excess(values: Array, limit: float) -> Array:
    """Returns the share by which a limit is broken; a limit of zero is broken by the value itself."""
    return np.maximum(values - limit, 0.0) / (limit if limit > 0 else 1.0)

"""A bound that no schedule can beat: what every tenant still lacks at least, at every moment."""

from __future__ import annotations

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.schedule.measure import LossCurve
from easel.schedule.simulate import World


def least_loss(world: World, horizon: float, points: int = 200) -> LossCurve:
    """The mean loss that is left at least, whatever the order; everybody is there from the beginning.

    At time `t` a tenant has at best one of the candidates that the fastest device ends by then, and all of them
    together have used at most what all devices do by then. Which candidate each has is a knapsack with one choice
    for each tenant; its fractional optimum, which takes the steepest steps of all tenants' concave hulls first, is
    never below the best that can be done. Within a step of the grid its right end counts.
    """
    if world.arrivals or world.departures:
        raise InvalidInput("the bound is for pools in which nobody comes or goes")
    if horizon <= 0:
        raise InvalidInput("a bound needs a horizon above zero")
    speeds = [world.speed(device) for device in world.devices]
    fastest, together = max(speeds), sum(speeds)
    edges = np.linspace(0.0, horizon, points + 1)
    choices = _choices(world)
    total = float(world.best.sum())
    gains = np.array([_most(choices, t * fastest, t * together) for t in edges[1:]])
    return LossCurve(edges[:-1], (total - gains).clip(min=0.0) / max(len(choices), 1))


def _choices(world: World) -> list[tuple[Array, Array]]:
    """Returns for each tenant the costs and qualities of all that it can have, ordered by cost."""
    if world.curves is None:
        table = world.table
        cells = list(
            zip(np.ones_like(table.cost) if world.unit_cost else table.cost, table.quality, strict=True)
        )
    else:
        cells = [
            (cost.ravel(), quality.ravel())
            for cost, quality in zip(world.curves.cost, world.curves.quality, strict=True)
        ]
    found = []
    for cost, quality in cells:
        known = np.isfinite(cost) & np.isfinite(quality) & (quality > 0)
        order = np.argsort(cost[known], kind="stable")
        found.append((cost[known][order].clip(min=0.0), quality[known][order]))
    return found


def _most(choices: list[tuple[Array, Array]], each: float, together: float) -> float:
    """The largest sum of qualities when nobody may spend more than `each` and all no more than `together`."""
    costs, gains = [], []
    for cost, quality in choices:
        step_cost, step_gain = _hull(cost, quality, each)
        costs.append(step_cost)
        gains.append(step_gain)
    cost, gain = np.concatenate(costs), np.concatenate(gains)
    free = cost <= 0
    order = np.argsort(-gain[~free] / cost[~free], kind="stable")
    spent = np.cumsum(cost[~free][order])
    share = np.clip((together - (spent - cost[~free][order])) / cost[~free][order], 0.0, 1.0)
    return float(gain[free].sum() + (gain[~free][order] * share).sum())


def _hull(cost: Array, quality: Array, limit: float) -> tuple[Array, Array]:
    """Steps (cost, gain) of the upper concave hull from nothing at all to the best within `limit`."""
    points = [(0.0, 0.0)]
    for c, q in zip(cost[cost <= limit], quality[cost <= limit], strict=True):
        if q <= points[-1][1]:
            continue
        while len(points) > 1 and _above(points[-2], points[-1], (c, q)):
            points.pop()
        if c <= points[-1][0] and len(points) > 1:
            points.pop()
        points.append((float(c), float(q)))
    hull = np.array(points)
    return np.diff(hull[:, 0]), np.diff(hull[:, 1])


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether the line from `a` to `c` passes above `b`."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])

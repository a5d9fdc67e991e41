"""Points as arrays. A model sees `x` (hyperparameters and resources in [0, 1]), `s` (fidelities) and `price`.

Categories become one-hot columns divided by √2, so that two categories are as far apart as the two ends of a
number. A conditional dimension that does not apply sits at 0.5 and has one more column that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.declare.dimensions import Categorical, Dimension, DimensionRole, Value
from easel.declare.space import Point, PointKey, Space, point_key

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True)
class EncodedPoints:
    """`m` points as arrays.

    `x`: `(m, d)`; `s`: `(m, f)` fidelities relative to the full one, in (0, 1]; `u`: `(m, f)` the same on a log scale
    from 0 (lowest) to 1 (full); `price`: `(m,)` money per second.
    """

    points: Sequence[Point]
    x: Array
    s: Array
    u: Array
    price: Array

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def index(self) -> dict[PointKey, int]:
        return {point_key(point): i for i, point in enumerate(self.points)}

    @cached_property
    def features(self) -> Array:
        """`(m, d + f)`: what a tree sees."""
        return np.concatenate([self.x, self.u], axis=1)

    def rows(self, take: Ints) -> EncodedPoints:
        return EncodedPoints(
            [self.points[i] for i in take], self.x[take], self.s[take], self.u[take], self.price[take]
        )


class Codec:
    """Encodes points of one space; without rates every point has price 1, so that cost and time coincide."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._tuned = [d for d in space.dimensions if d.role is not DimensionRole.FIDELITY]
        self.width = sum(self._columns(d) for d in self._tuned)

    @staticmethod
    def _columns(dimension: Dimension) -> int:
        own = len(dimension.values) if isinstance(dimension, Categorical) else 1
        return own + (dimension.when is not None)

    def table(self, points: Iterable[Point]) -> EncodedPoints:
        rows = list(points)
        x = np.zeros((len(rows), self.width))
        at = 0
        for dimension in self._tuned:
            width = self._columns(dimension)
            x[:, at : at + width] = self._block(dimension, rows, width)
            at += width
        f = len(self.space.fidelities)
        s = np.array([[float(p[d.name]) for d in self.space.fidelities] for p in rows]).reshape(len(rows), f)
        top = np.array([float(d.target) for d in self.space.fidelities])
        low = np.array([float(d.levels(2)[0]) for d in self.space.fidelities])
        s = s / top
        u = 1.0 + np.log(s) / np.maximum(np.log(top / low), 1e-9)
        price = np.array([1.0 if (p := self.space.price_per_hour(r)) is None else p / 3600.0 for r in rows])
        return EncodedPoints(rows, x, s, u, price)

    def _block(self, dimension: Dimension, rows: Sequence[Point], width: int) -> Array:
        seen: dict[Value, Array] = {}

        def encode(value: Value) -> Array:
            block = np.zeros(width)
            if isinstance(dimension, Categorical):
                block[dimension.values.index(value)] = np.sqrt(0.5)
            else:
                block[0] = dimension.unit(value)
            if dimension.when is not None:
                block[-1] = 1.0
            return block

        absent = np.zeros(width)
        absent[0] = 0.5
        out = np.empty((len(rows), width))
        for i, row in enumerate(rows):
            value = row.get(dimension.name)
            if value is None:
                out[i] = absent
                continue
            if value not in seen:
                seen[value] = encode(value)
            out[i] = seen[value]
        return out


def levels(space: Space) -> list[dict[str, Value]]:
    """Every combination of fidelity values, `Float` fidelities at five; the full one comes last."""
    found: list[dict[str, Value]] = [{}]
    for dimension in space.fidelities:
        found = [{**known, dimension.name: value} for known in found for value in dimension.levels(5)]
    return found


def latin(space: Space, count: int, rng: np.random.Generator) -> list[dict[str, Value]]:
    """A Latin hypercube over the quantiles of every dimension; forbidden rows are drawn again at random."""
    names = [dimension.name for dimension in space.dimensions]
    units = scipy.stats.qmc.LatinHypercube(len(names), rng=rng).random(count)
    found = []
    for row in units:
        point = space.from_unit(dict(zip(names, row, strict=True)))
        while point is None:
            point = space.from_unit(dict(zip(names, rng.random(len(names)), strict=True)))
        found.append(point)
    return found


def scattered(space: Space, count: int, rng: np.random.Generator) -> list[dict[str, Value]]:
    """`count` distinct points spread by a scrambled Sobol sequence, fewer where the space is smaller."""
    names = [dimension.name for dimension in space.dimensions]
    size = 1 << max(1, (count - 1).bit_length())
    units = scipy.stats.qmc.Sobol(len(names), rng=rng).random(size)
    found: dict[PointKey, dict[str, Value]] = {}
    for row in units:
        point = space.from_unit(dict(zip(names, row, strict=True)))
        if point is not None and len(found) < count:
            found.setdefault(point_key(point), point)
    return list(found.values())


def near(space: Space, centre: Point, count: int, rng: np.random.Generator) -> list[dict[str, Value]]:
    """Points around `centre`: each coordinate moves by a small normal step or, sometimes, jumps anywhere."""
    found = []
    home = {}
    for dimension in space.dimensions:
        if dimension.name in centre:
            home[dimension.name] = dimension.unit(centre[dimension.name])
    for _ in range(count):
        width = 10.0 ** rng.uniform(-2.5, -0.7)
        units = {}
        for dimension in space.dimensions:
            base = home.get(dimension.name, float(rng.random()))
            if dimension.name not in home or rng.random() < 0.1:
                base = float(rng.random())
            elif not isinstance(dimension, Categorical):
                base += width * float(rng.standard_normal())
            units[dimension.name] = min(max(base, 0.0), 1.0 - 1e-9)
        if (point := space.from_unit(units)) is not None:
            found.append(point)
    return found

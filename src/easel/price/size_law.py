"""How the time of a kind of work grows with its data, from runs on data of many sizes. Pure.

`log seconds = a + b·log sizes` for each kind, its own line where it was seen often, else that of its family and of all:
the first guess that `expect.expected_seconds` moves by what was seen on this pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from easel.price.runs import RESOLUTION_S, Array

USUAL = np.array([0.8, 0.3, 0.3])
"""Exponents of rows, columns and classes that are believed before any run."""
EXPONENT_SD, LEVEL_SD, SPREAD = 0.4, 2.0, 0.5
"""How far exponents and level stray from that, and a run from its line, in log seconds."""
LEAST_RUNS = 3
FLOOR_S = 0.02
"""Shorter runs are overhead: they count as so long."""


@dataclass(frozen=True)
class DataSize:
    """Of one set of examples."""

    rows: float
    columns: float
    classes: float = 0.0

    def logs(self) -> Array:
        return np.log([max(v, 1.0) for v in (self.rows, self.columns, self.classes)])


@dataclass(frozen=True)
class SizedRun:
    """A run that has ended: what it was, on how much data, and how long it took."""

    name: str
    family: str
    size: DataSize
    seconds: float


@dataclass(frozen=True)
class SizeLaws:
    """Lines by name and by family: intercept and exponents `(4,)` each."""

    names: Mapping[str, Array]
    families: Mapping[str, Array]
    largest: Mapping[str, DataSize] = field(default_factory=dict)
    """The most rows, columns and classes that each family was seen on."""

    def within(self, family: str, size: DataSize) -> DataSize:
        """The size, cut down to what the family was seen on: a line says nothing of what lies far beyond its runs."""
        most = self.largest.get(family, size)
        return DataSize(
            min(size.rows, most.rows), min(size.columns, most.columns), min(size.classes, most.classes)
        )

    def guess(self, name: str, family: str, size: DataSize) -> float | None:
        """Median seconds on the machine of the runs; nothing where neither the kind nor its family was seen."""
        line = self.names.get(name, self.families.get(family))
        return None if line is None else float(np.exp(line[0] + size.logs() @ line[1:]))


def size_laws(runs: Sequence[SizedRun]) -> SizeLaws:
    """Lines from all `runs`; a name that was seen fewer than three times follows its family."""
    usable = [one for one in runs if np.isfinite(one.seconds) and one.seconds > RESOLUTION_S]
    by_name: dict[str, list[SizedRun]] = {}
    by_family: dict[str, list[SizedRun]] = {}
    for one in usable:
        by_name.setdefault(one.name, []).append(one)
        by_family.setdefault(one.family, []).append(one)
    families = {family: _line(some) for family, some in by_family.items()}
    names = {name: _line(some) for name, some in by_name.items() if len(some) >= LEAST_RUNS}
    largest = {
        family: DataSize(
            max(one.size.rows for one in some),
            max(one.size.columns for one in some),
            max(one.size.classes for one in some),
        )
        for family, some in by_family.items()
    }
    return SizeLaws(names, families, largest)


def _line(runs: Sequence[SizedRun]) -> Array:
    """Bayesian linear regression of log seconds on log sizes, exponents around the usual ones."""
    x = np.array([[1.0, *one.size.logs()] for one in runs])
    y = np.log(np.maximum([one.seconds for one in runs], FLOOR_S))
    centre = np.array([float(np.median(y - x[:, 1:] @ USUAL)), *USUAL])
    precision = np.diag([LEVEL_SD**-2, *np.full(3, EXPONENT_SD**-2)])
    inner = x.T @ x / SPREAD**2 + precision
    return np.asarray(centre + np.linalg.solve(inner, x.T @ (y - x @ centre) / SPREAD**2))

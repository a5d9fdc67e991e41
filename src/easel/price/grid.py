"""The resources among which the provisioner chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.errors import InvalidInput
from easel.price.runs import Array

ON_CPU = "cpu"


@dataclass(frozen=True)
class Shape:
    """Resources of one job. `device` is `cpu` or the name of a GPU, of which there are `gpus`."""

    cpus: float
    memory_mb: float
    device: str = ON_CPU
    gpus: float = 0.0


@dataclass(frozen=True)
class Grid:
    """`m` cells on one kind of device: `cpus` `(m,)`, `memory_mb` `(m,)`, `gpus` `(m,)`."""

    cpus: Array
    memory_mb: Array
    device: str = ON_CPU
    gpus: Array | None = None

    def __len__(self) -> int:
        return len(self.cpus)

    def shape(self, i: int) -> Shape:
        gpus = 0.0 if self.gpus is None else float(self.gpus[i])
        return Shape(float(self.cpus[i]), float(self.memory_mb[i]), self.device, gpus)


def span(low: float, high: float, step: float) -> Array:
    """`low, low + step, ..., high`, `high` included."""
    if not (0 < low <= high and step > 0 and np.isfinite([low, high, step]).all()):
        raise InvalidInput(f"a range from {low} to {high} by {step}: give 0 < low ≤ high and a positive step")
    return np.asarray(low + step * np.arange(int(np.floor((high - low) / step + 1e-9)) + 1))


def product_grid(cpus: Sequence[float] | Array, memories_mb: Sequence[float] | Array) -> Grid:
    """Every combination, memory fastest."""
    c, m = np.meshgrid(np.asarray(cpus, float), np.asarray(memories_mb, float), indexing="ij")
    if not c.size or (c <= 0).any() or (m <= 0).any():
        raise InvalidInput("the grid needs at least one vCPU size and one memory size, all positive")
    return Grid(c.ravel(), m.ravel())


def paper_grid() -> Grid:
    """ACAI §4.2.4: 0.5 to 8 vCPU by 0.5 and 512 to 8192 MB by 256, 496 cells."""
    return product_grid(span(0.5, 8.0, 0.5), span(512.0, 8192.0, 256.0))


def listed_grid(shapes: Sequence[Shape]) -> Grid:
    """Named machine types of one device kind, such as an instance catalogue."""
    kinds = {shape.device for shape in shapes}
    if len(kinds) != 1:
        raise InvalidInput("list machine types of one device at a time: each kind has its own runtime model")
    return Grid(
        np.array([shape.cpus for shape in shapes]),
        np.array([shape.memory_mb for shape in shapes]),
        kinds.pop(),
        np.array([shape.gpus for shape in shapes]),
    )

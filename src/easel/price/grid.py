"""The resources among which the provisioner chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.errors import InvalidInput
from easel.price.runs import Array, Flags

ON_CPU = "cpu"
ANY_GPU = "gpu"
"""A GPU of whatever kind the price book lists first: jobs ask for GPUs by number only."""


@dataclass(frozen=True)
class ResourceShape:
    """Resources of one job. `device` is `cpu` or the name of a GPU, of which there are `gpus`; `terms` names those of
    the devices that it is for, such as `spot`, where they differ.
    """

    cpus: float
    memory_mb: float
    device: str = ON_CPU
    gpus: float = 0.0
    terms: str = ""


@dataclass(frozen=True)
class Grid:
    """`m` cells on one kind of device: `cpus` `(m,)`, `memory_mb` `(m,)`, `gpus` `(m,)`.

    `terms` are those of the devices, one for each cell; none where all are alike.
    """

    cpus: Array
    memory_mb: Array
    device: str = ON_CPU
    gpus: Array | None = None
    terms: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.cpus)

    def shape(self, i: int) -> ResourceShape:
        gpus = float(self.gpu_counts[i])
        return ResourceShape(
            float(self.cpus[i]),
            float(self.memory_mb[i]),
            self.device if gpus else ON_CPU,
            gpus,
            self.terms[i] if self.terms else "",
        )

    @property
    def gpu_counts(self) -> Array:
        """`(m,)`, zeros where there are none."""
        return np.zeros(len(self)) if self.gpus is None else self.gpus

    def where(self, keep: Flags) -> Grid:
        """Returns only the cells for which `keep` `(m,)` holds."""
        gpus = None if self.gpus is None else self.gpus[keep]
        terms = tuple(one for one, kept in zip(self.terms, keep, strict=False) if kept)
        return Grid(self.cpus[keep], self.memory_mb[keep], self.device, gpus, terms)


def span(low: float, high: float, step: float) -> Array:
    """`low, low + step, ..., high`, `high` included."""
    if not (0 < low <= high and step > 0 and np.isfinite([low, high, step]).all()):
        raise InvalidInput(f"a range from {low} to {high} by {step}: give 0 < low ≤ high and a positive step")
    return np.asarray(low + step * np.arange(int(np.floor((high - low) / step + 1e-9)) + 1))


def product_grid(
    cpus: Sequence[float] | Array, memories_mb: Sequence[float] | Array, gpus: Sequence[float] = (0.0,)
) -> Grid:
    """Every combination, memory fastest, numbers of GPUs slowest."""
    g, c, m = np.meshgrid(
        np.asarray(gpus, float), np.asarray(cpus, float), np.asarray(memories_mb, float), indexing="ij"
    )
    if not c.size or (c <= 0).any() or (m <= 0).any() or (g < 0).any():
        raise InvalidInput("the grid needs at least one vCPU size and one memory size, all positive")
    if not g.any():
        return Grid(c.ravel(), m.ravel())
    return Grid(c.ravel(), m.ravel(), ANY_GPU, g.ravel())


def paper_grid(gpus: Sequence[float] = (0.0,)) -> Grid:
    """ACAI §4.2.4: 0.5 to 8 vCPU by 0.5 and 512 to 8192 MB by 256, 496 cells; so many for each number of GPUs."""
    return product_grid(span(0.5, 8.0, 0.5), span(512.0, 8192.0, 256.0), gpus)


def listed_grid(shapes: Sequence[ResourceShape]) -> Grid:
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

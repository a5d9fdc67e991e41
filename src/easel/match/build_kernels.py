"""Builds the GPU kernels of our networks ahead: `python -m easel.match.build_kernels`, into TRITON_CACHE_DIR.

A worker with a GPU does so once: trials, which build behind walls and for themselves alone, find them there. Every
network takes a few steps on drawn pictures, alone and together, forth and back. No data of anybody is read.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator

import torch
from torch import nn

from easel.match.device_data import Data
from easel.match.loop import Schedule, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo.images import IMAGE_NETWORKS, build_image_network

log = logging.getLogger("easel.match")
WIDTHS = (0.25, 0.5, 1.0)
SHAPES = ((1, 28, 28), (3, 32, 32))
TOGETHER = (2, 4)
CLASSES, EXAMPLES, BATCH = 10, 128, 64


def worlds() -> Iterator[tuple[str, tuple[int, int, int], float]]:
    """Yields the networks, pictures and widths to build for; those of small trials first."""
    for width, shape, name in itertools.product(WIDTHS, SHAPES, IMAGE_NETWORKS):
        yield name, shape, width


def drawn(shape: tuple[int, int, int]) -> Data:
    """Returns random pictures on the device where networks train."""
    x, y = torch.randn(EXAMPLES, *shape), torch.randint(CLASSES, (EXAMPLES,))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Data({"x": x.to(device)}, {"y": y.to(device)})


def build(name: str, shape: tuple[int, int, int], width: float) -> None:
    """Takes a few steps with a network: by itself, and with others as one program."""
    data, rows = drawn(shape), torch.arange(EXAMPLES)
    schedule = Schedule(1, 1e-3, batch=BATCH)

    def network() -> nn.Module:
        return build_image_network(name, shape, CLASSES, width)

    fit(network(), data, data, ClassObjective(), schedule, seed=0, out_of_time=lambda: False)
    for count in TOGETHER:
        members = [PackedMember(network(), rows, rows, schedule) for _ in range(count)]
        fit_together(members, data, ClassObjective(), seed=0)


def main() -> None:
    for name, shape, width in worlds():
        try:
            build(name, shape, width)
        except Exception as error:  # noqa: BLE001  of one network: the kernels of the others are worth having
            log.warning("the kernels of %s for pictures of %s are not built: %s", name, shape, error)


if __name__ == "__main__":
    main()

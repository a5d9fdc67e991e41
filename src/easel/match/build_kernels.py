"""Builds the GPU kernels of our networks ahead: `python -m easel.match.build_kernels FOLDER`.

A worker with a GPU does so once: trials, which build behind walls and for themselves alone, find them there. Every
network takes a few steps on drawn pictures, alone and together, forth and back. No data of anybody is read. Triton
keeps them in TRITON_CACHE_DIR; the folder tells which are whole, and which networks need no others. One that was
stopped goes on.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from easel.match.device_data import Data
from easel.match.loop import Schedule, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo.images import IMAGE_NETWORKS, build_image_network
from easel.match.zoo.kernel_use import network_name

log = logging.getLogger("easel.match")
WIDTHS = (0.25, 0.5, 1.0)
SHAPES = ((1, 28, 28), (3, 32, 32))
TOGETHER = 3
NETWORKS, WHOLE = "networks", "whole"
CLASSES, EXAMPLES, BATCH = 10, 128, 64


def networks() -> Iterator[tuple[str, float]]:
    """Yields the networks to build for, with their widths; those of small trials first."""
    for width, name in itertools.product(WIDTHS, IMAGE_NETWORKS):
        yield name, width


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
    members = [PackedMember(network(), rows, rows, schedule) for _ in range(TOGETHER)]
    fit_together(members, data, ClassObjective(), seed=0)


def tell(built: Path, folder: Path) -> None:
    """Lists the kernels that are there: they are whole, since nothing is being built meanwhile."""
    names = sorted(one.name for one in built.iterdir()) if built.is_dir() else []
    listed = folder / f"{WHOLE}.new"
    listed.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    listed.replace(folder / WHOLE)


def main(built: Path, folder: Path) -> None:
    named = folder / NETWORKS
    named.mkdir(parents=True, exist_ok=True)
    for name, width in networks():
        network = named / network_name(name, width)
        if network.exists():
            continue
        try:
            for shape in SHAPES:
                build(name, shape, width)
        except Exception as error:  # noqa: BLE001  of one network: the kernels of the others are worth having
            log.warning("the kernels of %s are not built: %s", network.name, error)
        else:
            tell(built, folder)
            network.touch()


if __name__ == "__main__":
    main(Path(os.environ["TRITON_CACHE_DIR"]), Path(sys.argv[1]))

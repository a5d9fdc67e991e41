"""Data augmentation for pictures: fresh, random, label-preserving changes in every epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from easel.match.device_data import Batch

AUGMENTATIONS = ("none", "affine", "flip", "warp")


@cache
def augmentation(name: str) -> Callable[[Batch], Batch]:
    """`affine`: turn ±12°, scale ±12 %, shift ±10 %. `flip`: mirror half of them, shift ±12 %. `warp`: as `affine`,
    with shear, and bent smoothly as handwriting and cells are."""
    if name not in AUGMENTATIONS:
        raise ValueError(f"unknown augmentation {name}")

    def change(batch: Batch) -> Batch:
        x = batch["x"]
        if name == "none" or min(x.shape[2:]) < 4:
            return batch
        return {**batch, "x": _CHANGES[name](x)}

    return change


def _uniform(n: int, reach: float, like: Tensor) -> Tensor:
    return (torch.rand(n, device=like.device) * 2 - 1) * reach


def _affine(x: Tensor) -> Tensor:
    n = len(x)
    angle, scale = _uniform(n, 0.21, x), 1 + _uniform(n, 0.12, x)
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    rows = torch.stack(
        [
            torch.stack([cos, -sin, _uniform(n, 0.2, x)], dim=1),
            torch.stack([sin, cos, _uniform(n, 0.2, x)], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(rows, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _warp(x: Tensor) -> Tensor:
    n, (height, width) = len(x), x.shape[2:]
    angle, shear = _uniform(n, 0.2, x), _uniform(n, 0.25, x)
    across, down = 1 + _uniform(n, 0.15, x), 1 + _uniform(n, 0.15, x)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = torch.stack(
        [
            torch.stack([cos * across, (shear * cos - sin) * down, _uniform(n, 0.18, x)], dim=1),
            torch.stack([sin * across, (shear * sin + cos) * down, _uniform(n, 0.18, x)], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(rows, list(x.shape), align_corners=False)
    # A few random arrows, and smooth in between: at most about a pixel and a half of 28.
    arrows = torch.randn(n, 2, 5, 5, device=x.device) * 0.045
    bent = functional.interpolate(arrows, (height, width), mode="bicubic", align_corners=True)
    return functional.grid_sample(
        x, grid + bent.permute(0, 2, 3, 1), padding_mode="border", align_corners=False
    )


def _flip(x: Tensor) -> Tensor:
    mirror = (torch.rand(len(x), device=x.device) < 0.5).view(-1, 1, 1, 1)
    x = torch.where(mirror, x.flip(3), x)
    reach = max(1, x.shape[3] // 8)
    padded = functional.pad(x, (reach,) * 4, mode="replicate")
    # Chosen on the device: a number that the host must know would make the GPU wait for it.
    top, left = torch.randint(2 * reach + 1, (2,), device=x.device)
    rows = top + torch.arange(x.shape[2], device=x.device)
    columns = left + torch.arange(x.shape[3], device=x.device)
    return padded.index_select(2, rows).index_select(3, columns)


_CHANGES: dict[str, Callable[[Tensor], Tensor]] = {"affine": _affine, "flip": _flip, "warp": _warp}

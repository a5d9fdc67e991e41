"""Batch normalisation, an addition and ReLU as two GPU kernels forth and two back; a bias and ReLU as one and one.

Written as separate layers they read and write every number 13 times a step, here 8 times; small networks also have
half as many kernels to start. Statistics are those of `nn.BatchNorm2d`. For channels-last half precision. Needs Triton,
which torch brings along for GPUs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from easel.match.zoo import fused_kernels

PROGRAMS = 528
"""Of one kernel: four for each multiprocessor of a large GPU."""
TILE, NARROW_TILE, SMALL_TILE, SMALL = 8192, 4096, 1024, 1 << 19
"""Numbers that a program holds at once; where there are fewer than 64 channels; and where there are so few in all that
larger tiles would leave most of a GPU idle."""


def _shape(x: Tensor, members: int = 1) -> tuple[int, int, int, int, int, int, int]:
    """Rows of a member, channels, rows and channels of a tile, columns of programs, how many programs sum, and the rows
    of each of those."""
    channels = x.shape[1]
    rows = x.numel() // channels // members
    wide = min(64, max(8, triton.next_power_of_2(channels)))
    tile = SMALL_TILE if x.numel() < SMALL else TILE if wide == 64 else NARROW_TILE
    high = tile // wide
    columns = -(-channels // wide)
    parts = max(1, min(-(-rows // high), PROGRAMS // (columns * members)))
    chunk = -(-rows // (parts * high)) * high
    return rows, channels, high, wide, columns, -(-rows // chunk), chunk


def apart_of(x: Tensor) -> int:
    """Returns how far its pixels lie apart: more than its channels where it is part of a wider one."""
    _, _, high, wide = x.shape
    return x.stride(3) if wide > 1 else x.stride(2) if high > 1 else x.stride(0)


def in_rows(dy: Tensor) -> Tensor:
    """Returns a gradient whose pixels are rows equally far apart: part of a wider one is left where it is."""
    _, channels, high, wide = dy.shape
    apart = apart_of(dy)
    even = dy.stride(0) == high * wide * apart and (high == 1 or dy.stride(2) == wide * apart)
    if even and dy.stride(1) == 1 and apart >= channels and apart % 8 == 0 and dy.storage_offset() % 8 == 0:
        return dy
    return dy.contiguous(memory_format=torch.channels_last)


Layer = tuple[Tensor, Tensor, Tensor]
"""Input, weight and bias of one normalisation."""
Settings = tuple[float, float, bool]
"""Momentum, the small number beside the variance, and whether a ReLU follows."""


def _members(weight: Tensor) -> tuple[int, int]:
    """Returns of how many networks weights `(members, channels)` or `(channels,)` are, and how far apart theirs lie."""
    return (1, 0) if weight.ndim == 1 else (len(weight), weight.stride(0))


def _forth(
    layer: Layer,
    beside: Tensor | None,
    running: tuple[Tensor, Tensor],
    counter: Tensor,
    settings: Settings,
    y: Tensor,
) -> tuple[Tensor, Tensor]:
    """Normalises into `y`, which may be channels of a wider one; returns mean and inverse deviation."""
    x, weight, bias = layer
    momentum, eps, relu = settings
    members, apart = _members(weight)
    rows, channels, high, wide, columns, parts, chunk = _shape(x, members)
    partial = torch.empty(members, parts, 2, channels, device=x.device)
    mean, rstd = torch.empty(2, members, channels, device=x.device).unbind(0)
    shape = {"BLOCK_M": high, "BLOCK_C": wide}
    fused_kernels.statistics[(parts, columns, members)](
        x, partial, counter, mean, rstd, *running, rows, channels, chunk, momentum, eps, **shape
    )
    added = x if beside is None else beside
    flags = {"RELU": relu, "ADD": beside is not None}
    fused_kernels.apply[(-(-rows // high), columns, members)](
        x, added, y, mean, rstd, weight, bias, rows, channels, apart_of(y), apart, **shape, **flags
    )
    return mean, rstd


def _back(
    layer: Layer, found: tuple[Tensor, Tensor], counter: Tensor, relu: bool, y: Tensor | None, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Returns the gradients of input, weight, bias and, where `y` came out of an addition, of what was added."""
    x, weight, bias = layer
    members, between = _members(weight)
    rows, channels, high, wide, columns, parts, chunk = _shape(x, members)
    partial = torch.empty(members, parts, 2, channels, device=x.device)
    dweight, dbias = torch.empty(2, *weight.shape, device=x.device).unbind(0)
    dx = torch.empty_like(x)
    dbeside = None if y is None else torch.empty_like(x)
    shape = {"BLOCK_M": high, "BLOCK_C": wide, "RELU": relu, "ADD": y is not None}
    after, given, apart = x if y is None else y, (*found, weight, bias, dweight, dbias), apart_of(dy)
    fused_kernels.sums_back[(parts, columns, members)](
        dy, x, after, partial, counter, *given, rows, channels, apart, between, chunk, **shape
    )
    fused_kernels.apply_back[(-(-rows // high), columns, members)](
        dy, x, after, dx, dx if dbeside is None else dbeside, *given, rows, channels, apart, between, **shape
    )
    return dx, dweight, dbias, dbeside


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        beside: Tensor | None,
        running: tuple[Tensor, Tensor],
        counter: Tensor,
        settings: Settings,
    ) -> Tensor:
        y = torch.empty_like(x)
        found = _forth((x, weight, bias), beside, running, counter, settings, y)
        ctx.save_for_backward(x, weight, bias, *found, *([] if beside is None else [y]))
        ctx.counter, ctx.relu = counter, settings[2]
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd, *y = ctx.saved_tensors
        after = y[0] if y else None
        made = _back((x, weight, bias), (mean, rstd), ctx.counter, ctx.relu, after, in_rows(dy))
        return *made, None, None, None


class _JoinedNorms(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, sides: list[tuple[tuple[Tensor, Tensor], Tensor, Settings]], *flat: Tensor
    ) -> Tensor:
        layers: list[Layer] = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
        first = layers[0][0]
        shape = (len(first), sum(x.shape[1] for x, _, _ in layers), *first.shape[2:])
        y = torch.empty(shape, dtype=first.dtype, device=first.device, memory_format=torch.channels_last)
        found: list[Tensor] = []
        parts = torch.split(y, [x.shape[1] for x, _, _ in layers], dim=1)
        for layer, (running, counter, settings), part in zip(layers, sides, parts, strict=True):
            found += _forth(layer, None, running, counter, settings, part)
        ctx.save_for_backward(*flat, *found)
        ctx.sides = [(counter, settings[2]) for _, counter, settings in sides]
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        count, saved = len(ctx.sides), ctx.saved_tensors
        layers = [saved[3 * i : 3 * i + 3] for i in range(count)]
        found = [saved[3 * count + 2 * i : 3 * count + 2 * i + 2] for i in range(count)]
        parts = torch.split(in_rows(dy), [layer[0].shape[1] for layer in layers], dim=1)
        made: list[Tensor | None] = []
        for layer, of, (counter, relu), part in zip(layers, found, ctx.sides, parts, strict=True):
            made += _back(layer, of, counter, relu, None, part)[:3]
        return None, *made


class _BiasRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, counter: Tensor) -> Tensor:
        rows, channels, high, wide, columns, _, _ = _shape(x)
        fused_kernels.bias_relu[(-(-rows // high), columns)](
            x, x, bias, rows, channels, BLOCK_M=high, BLOCK_C=wide
        )
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.counter = counter
        return x

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        (y,) = ctx.saved_tensors
        dy = in_rows(dy)
        rows, channels, high, wide, columns, parts, chunk = _shape(y)
        partial = torch.empty(parts, channels, device=y.device)
        dbias, dx = torch.empty(channels, device=y.device), torch.empty_like(y)
        fused_kernels.bias_relu_back[(parts, columns)](
            dy,
            y,
            dx,
            partial,
            ctx.counter,
            dbias,
            rows,
            channels,
            apart_of(dy),
            chunk,
            BLOCK_M=high,
            BLOCK_C=wide,
        )
        return dx, dbias, None


def bias_relu(x: Tensor, bias: Tensor, counter: Tensor) -> Tensor:
    """Returns `relu(x + bias)` in the place of `x`, which is channels-last."""
    found: Tensor = _BiasRelu.apply(x, bias, counter)  # type: ignore[no-untyped-call]
    return found


def batch_norm_relu(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    beside: Tensor | None,
    running: tuple[Tensor, Tensor],
    counter: Tensor,
    settings: Settings,
) -> Tensor:
    """Returns `relu(normalised x + beside)`, and moves the running mean and variance.

    `x` and `beside` are channels-last and of one type; `counter` holds a nought for each 64 channels. With weights
    `(members, channels)` the examples of several networks lie one after another, and each is normalised by itself.
    """
    found: Tensor = _NormRelu.apply(x, weight, bias, beside, running, counter, settings)  # type: ignore[no-untyped-call]
    return found


def joined_norms(sides: list[tuple[tuple[Tensor, Tensor], Tensor, Settings]], layers: list[Layer]) -> Tensor:
    """Returns several normalised inputs side by side as channels of one: nothing is copied to join them.

    `sides`: of each its running mean and variance, its counter and its settings.
    """
    found: Tensor = _JoinedNorms.apply(sides, *(one for layer in layers for one in layer))  # type: ignore[no-untyped-call]
    return found

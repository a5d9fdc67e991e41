"""3 × 3 convolutions of few channels as one GPU kernel forth, one for the input back and two for the weights.

For one network or for several of one shape at once. Half precision, channels last. Needs Triton.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from easel.match.zoo import conv_kernels

PROGRAMS = 528
"""Of the kernel that sums: four for each multiprocessor of a large GPU."""
ROWS, SUMMED_ROWS, SUMMED_WIDE = 128, 64, 64


def _sides(x: Tensor, weight: Tensor) -> tuple[int, int, int, int, int]:
    """Returns members, how far apart their weights lie, outputs, inputs, and the pixels of one member."""
    members, apart = (1, 0) if weight.ndim == 4 else (len(weight), weight.stride(0))
    outputs, inputs = weight.shape[-4], weight.shape[-3]
    return members, apart, outputs, inputs, x.numel() // x.shape[1] // members


def _product(x: Tensor, weight: Tensor, outputs: int, strides: tuple[int, int, int], *, flip: bool) -> Tensor:
    members, apart, _, _, rows = _sides(x, weight)
    count, channels, height, width = x.shape
    y = torch.empty(
        (count, outputs, height, width), dtype=x.dtype, device=x.device, memory_format=torch.channels_last
    )
    deep = 16 if channels == 1 else 64 if channels > 16 else 32
    conv_kernels.conv[(-(-rows // ROWS), members)](
        x, weight, y, rows, height, width, apart, *strides,
        CHANNELS=channels, OUTPUTS=outputs, FLIP=flip,
        BLOCK_M=ROWS, BLOCK_K=deep, BLOCK_N=max(16, triton.next_power_of_2(outputs)),
    )  # fmt: skip
    return y


def _weight_gradient(x: Tensor, weight: Tensor, dy: Tensor) -> Tensor:
    members, _, outputs, inputs, rows = _sides(x, weight)
    wide = min(SUMMED_WIDE, max(16, triton.next_power_of_2(9 * inputs)))
    blocks = -(-9 * inputs // wide)
    parts = max(1, min(-(-rows // SUMMED_ROWS), PROGRAMS // (blocks * members)))
    chunk = -(-rows // (parts * SUMMED_ROWS)) * SUMMED_ROWS
    parts = -(-rows // chunk)
    count = outputs * 9 * inputs
    partial = torch.empty(members, parts, count, device=x.device)
    conv_kernels.conv_weight[(parts, members, blocks)](
        dy, x, partial, rows, x.shape[2], x.shape[3], chunk,
        CHANNELS=inputs, OUTPUTS=outputs,
        BLOCK_M=SUMMED_ROWS, BLOCK_K=wide, BLOCK_N=max(16, triton.next_power_of_2(outputs)),
    )  # fmt: skip
    made = torch.empty(members, outputs, 3, 3, inputs, dtype=weight.dtype, device=x.device)
    conv_kernels.summed[(-(-count // 32), members)](partial, made, parts, count, BLOCK_P=128, BLOCK=32)
    made = made.permute(0, 1, 4, 2, 3)
    return made[0] if weight.ndim == 4 else made


class _SmallConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        outputs, inputs = weight.shape[-4], weight.shape[-3]
        return _product(x, weight, outputs, (1, inputs, 9 * inputs), flip=False)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        inputs = weight.shape[-3]
        dy = dy.contiguous(memory_format=torch.channels_last)
        dx = dweight = None
        if ctx.needs_input_grad[0]:
            dx = _product(dy, weight, inputs, (9 * inputs, inputs, 1), flip=True)
        if ctx.needs_input_grad[1]:
            dweight = _weight_gradient(x, weight, dy)
        return dx, dweight


def small_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Returns the convolution, padded to the same size, of channels-last `x` `(members · n, inputs, height, width)`.

    `weight` is `(outputs, inputs, 3, 3)`, or has the members before; in memory its inputs lie side by side.
    """
    found: Tensor = _SmallConv.apply(x, weight)  # type: ignore[no-untyped-call]
    return found

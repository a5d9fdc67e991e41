"""A strided convolution of a picture in few colours, as one without a stride over folded blocks of pixels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

FEW_COLOURS = 4
"""Up to so many channels, tensor cores are filled with noughts where a picture is not folded."""


class StridedConv(nn.Conv2d):
    """The same numbers as `nn.Conv2d` gives. In half precision on a GPU, where it has a stride and few channels, blocks
    of pixels become channels, which fill tensor cores."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.stride[0] == 1 or self.in_channels > FEW_COLOURS or not in_half_precision(x):
            plain: Tensor = super()._conv_forward(x, weight, bias)  # type: ignore[no-untyped-call, unused-ignore]
            return plain
        return folded_conv(x.to(torch.bfloat16), weight, bias, self.stride[0], int(self.padding[0]))


def folded_conv(x: Tensor, weight: Tensor, bias: Tensor | None, step: int, pad: int) -> Tensor:
    """Returns the convolution with stride `step` of `x` `(n, c, h, w)` with `weight` `(outputs, c, k, k)`."""
    side = weight.shape[2]
    before, after = -(-pad // step), (side - 1 - pad) // step
    missing = (before * step - pad, (after + 1) * step - (side - pad))
    folded = functional.pixel_unshuffle(functional.pad(weight, missing * 2), step)
    sides = []
    for size in (x.shape[3], x.shape[2]):
        out = (size + 2 * pad - side) // step + 1
        sides += [before * step, (out + after) * step - size]
    blocks = functional.pixel_unshuffle(functional.pad(x, sides), step)
    return functional.conv2d(blocks.contiguous(memory_format=torch.channels_last), folded, bias)


def in_half_precision(x: Tensor) -> bool:
    """Whether a layer computes in bfloat16 on a GPU, and no compiler is at work."""
    return (
        x.is_cuda
        and torch.is_autocast_enabled("cuda")
        and not torch.compiler.is_compiling()
        and x.numel() < 2**30
    )

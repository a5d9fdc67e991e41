"""Layers that a GPU has a better way for than the library's: pooling and small convolutions.

Their weights, and what they compute, are those of the plain layers, which they are everywhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from easel.match.zoo.kernel_use import kernels_wanted
from easel.match.zoo.norm import fits_kernels
from easel.match.zoo.strided_conv import StridedConv, in_half_precision

log = logging.getLogger("easel.match")
FEW_CHANNELS = 32
"""Up to so many, in and out, our convolution is the quicker one."""


class MaxPool(nn.MaxPool2d):
    """Max pooling with square windows."""

    def __init__(self, side: int, stride: int, padding: int) -> None:
        super().__init__(side, stride, padding)
        self._window = (side, stride, padding)

    def forward(self, x: Tensor) -> Tensor:
        if fits_kernels(x) and (pool := pool_kernels()) is not None:
            return pool(x, self._window)
        plain: Tensor = super().forward(x)
        return plain


class SmallConv(nn.Conv2d):
    """A 3 × 3 convolution of few channels, padded to the same size, without bias."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(channels, out, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if in_half_precision(x) and (conv := conv_kernels()) is not None:
            return conv(ready(x), in_order(self.weight))
        return super().forward(x)


def convolution(channels: int, out: int, kernel: int, stride: int) -> nn.Conv2d:
    """Returns the convolution without bias, padded to the same size, that suits a GPU best."""
    if kernel == 3 and stride == 1 and max(channels, out) <= FEW_CHANNELS:
        return SmallConv(channels, out)
    return StridedConv(channels, out, kernel, stride=stride, padding=kernel // 2, bias=False)


def ready(x: Tensor) -> Tensor:
    """Returns pictures as the kernels want them."""
    return x.to(torch.bfloat16).contiguous(memory_format=torch.channels_last)


def in_order(weight: Tensor) -> Tensor:
    """Returns weights as the kernels want them."""
    return weight.to(torch.bfloat16).contiguous(memory_format=torch.channels_last)


def pool_kernels() -> Callable[[Tensor, tuple[int, int, int]], Tensor] | None:
    """Returns the pooling kernels, tried once; None where not wanted, or not to be built here."""
    return _tried_pool_kernels() if kernels_wanted() else None


@cache
def _tried_pool_kernels() -> Callable[[Tensor, tuple[int, int, int]], Tensor] | None:
    try:
        from easel.match.zoo.fused_pool import max_pool

        x = torch.randn(2, 8, 6, 6, device="cuda", dtype=torch.bfloat16)
        x = x.to(memory_format=torch.channels_last)
        _agree(max_pool(x, (2, 2, 0)), functional.max_pool2d(x, 2))
    except Exception as error:  # noqa: BLE001  whatever a compiler says: the library does the same work
        log.info("pooling is the library's, since its kernels cannot be built: %s", error)
        return None
    return max_pool


def conv_kernels() -> Callable[[Tensor, Tensor], Tensor] | None:
    """Returns the kernels of small convolutions, tried once; None where not wanted, or not to be built here."""
    return _tried_conv_kernels() if kernels_wanted() else None


@cache
def _tried_conv_kernels() -> Callable[[Tensor, Tensor], Tensor] | None:
    try:
        from easel.match.zoo.small_conv import small_conv

        with torch.autocast("cuda", enabled=False):
            x, weight = torch.randn(2, 8, 6, 6, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
            made = small_conv(ready(x), in_order(weight))
            _agree(made, functional.conv2d(ready(x).float(), in_order(weight).float(), padding=1))
    except Exception as error:  # noqa: BLE001  whatever a compiler says: the library does the same work
        log.info("small convolutions are the library's, since their kernels cannot be built: %s", error)
        return None
    return small_conv


def loss_kernel() -> Callable[[Tensor, Tensor, float], Tensor] | None:
    """Returns the kernel of the loss of classes, tried once; None where not wanted, or not to be built here."""
    return _tried_loss_kernel() if kernels_wanted() else None


@cache
def _tried_loss_kernel() -> Callable[[Tensor, Tensor, float], Tensor] | None:
    try:
        from easel.match.zoo.fused_step import class_loss

        answers, y = torch.randn(4, 5, device="cuda"), torch.arange(4, device="cuda")
        wanted = functional.cross_entropy(answers, y, label_smoothing=0.1, reduction="none")
        _agree(class_loss(answers, y, 0.1), wanted)
    except Exception as error:  # noqa: BLE001  whatever a compiler says: the library does the same work
        log.info("the loss is the library's, since its kernel cannot be built: %s", error)
        return None
    return class_loss


def adam_kernel() -> Callable[..., None] | None:
    """Returns the kernel of AdamW's steps, built once; None where not wanted, or not to be built here."""
    return _tried_adam_kernel() if kernels_wanted() else None


@cache
def _tried_adam_kernel() -> Callable[..., None] | None:
    try:
        from easel.match.zoo.fused_step import adam_step

        rows, places = torch.ones(1, 4, device="cuda"), torch.arange(4, device="cuda")
        moments = (torch.zeros_like(rows), torch.zeros_like(rows))
        read, factors = torch.zeros(4, device="cuda"), torch.ones(3, 1, 1, device="cuda")
        adam_step(rows, moments, rows.clone(), factors, (places, read, None), (5.0, (0.9, 0.999), 1e-8))
    except Exception as error:  # noqa: BLE001  whatever a compiler says: the library does the same work
        log.info("steps of packed networks are the library's, since their kernel cannot be built: %s", error)
        return None
    return adam_step


def _agree(made: Tensor, wanted: Tensor) -> None:
    if not torch.allclose(made.float(), wanted.float(), rtol=0.02, atol=0.1):
        raise ArithmeticError("they compute something else")

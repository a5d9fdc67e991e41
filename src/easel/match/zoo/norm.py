"""Batch normalisation and biases that take addition and ReLU along, where a GPU has kernels for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from easel.match.zoo.kernel_use import kernels_wanted
from easel.match.zoo.strided_conv import StridedConv

log = logging.getLogger("easel.match")
WIDE = 64
"""Channels for which the kernels need one counter."""


class Norm(nn.BatchNorm2d):
    """`relu(normalised x + beside)`, with or without either; its weights are those of `nn.BatchNorm2d`."""

    def __init__(self, channels: int, *, relu: bool = False) -> None:
        super().__init__(channels)
        self.relu = relu
        self._counter: Tensor | None = None

    def forward(self, x: Tensor, beside: Tensor | None = None) -> Tensor:
        if self.training and fits_kernels(x) and (fused := kernels()) is not None:
            return self._fused(fused, x, beside)
        found = super().forward(x)
        if beside is not None:
            found = found + beside
        return functional.relu(found, inplace=True) if self.relu else found

    def _fused(self, fused: Callable[..., Tensor], x: Tensor, beside: Tensor | None) -> Tensor:
        if beside is not None:
            beside = beside.to(x.dtype).contiguous(memory_format=torch.channels_last)
        return fused(x, self.weight, self.bias, beside, *self.side(x))

    def side(self, x: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor, tuple[float, float, bool]]:
        """Returns what the kernels need besides the weights: running statistics, a counter and settings."""
        self._counter = counter_for(self._counter, x)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.momentum is not None
        running = (self.running_mean, self.running_var)
        return running, self._counter, (self.momentum, self.eps, self.relu)


def joined(paths: Iterable[nn.Module], x: Tensor) -> Tensor:
    """Returns what the paths, each of which ends with a `Norm`, make of `x`: side by side, as channels of one."""
    made, norms = [], []
    for path in paths:
        before, norm = _ending(path)
        after = x
        for layer in before:
            after = layer(after)
        made.append(after)
        norms.append(norm)
    if (
        all(norm.training and fits_kernels(one) for norm, one in zip(norms, made, strict=True))
        and kernels() is not None
    ):
        from easel.match.zoo.fused_norm import joined_norms

        sides = [norm.side(one) for norm, one in zip(norms, made, strict=True)]
        return joined_norms(
            sides, [(one, norm.weight, norm.bias) for norm, one in zip(norms, made, strict=True)]
        )
    return torch.cat([norm(one) for norm, one in zip(norms, made, strict=True)], dim=1)


def _ending(path: nn.Module) -> tuple[list[nn.Module], Norm]:
    """The layers of a path before its last one, which is a normalisation."""
    before: list[nn.Module] = []
    last = path
    while isinstance(last, nn.Sequential):
        *more, last = last
        before += more
    assert isinstance(last, Norm)
    return before, last


class ConvRelu(StridedConv):
    """A convolution with its bias and ReLU; its weights are those of `nn.Conv2d`."""

    _counter: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or not (self.training and x.is_cuda and kernels() is not None):
            return functional.relu(super().forward(x), inplace=True)
        assert self.bias is not None
        made = self._conv_forward(x, self.weight, None)
        if not fits_kernels(made):
            return functional.relu(made + self.bias.to(made.dtype).view(-1, 1, 1))
        from easel.match.zoo.fused_norm import bias_relu

        self._counter = counter_for(self._counter, made)
        return bias_relu(made, self.bias, self._counter)


def counter_for(counter: Tensor | None, x: Tensor) -> Tensor:
    """Returns the counter of a layer, made where it has none on this device."""
    if counter is None or counter.device != x.device:
        return torch.zeros(-(-x.shape[1] // WIDE), dtype=torch.int32, device=x.device)
    return counter


def fits_kernels(x: Tensor) -> bool:
    """Whether the kernels are made for it: half precision on a GPU, channels last, eight by eight, and no compiler at
    work."""
    return (
        x.is_cuda
        and x.dtype == torch.bfloat16
        and not torch.compiler.is_compiling()
        and x.is_contiguous(memory_format=torch.channels_last)
        and x.shape[1] % 8 == 0
        and x.numel() > x.shape[1]
    )


def kernels() -> Callable[..., Tensor] | None:
    """Returns the fused kernels after trying them once; None where they are not wanted or cannot be built here."""
    return _tried() if kernels_wanted() else None


@cache
def _tried() -> Callable[..., Tensor] | None:
    try:
        from easel.match.zoo.fused_norm import batch_norm_relu

        _try_out(batch_norm_relu)
    except Exception as error:  # noqa: BLE001  whatever a compiler says: the layers do the same work one by one
        log.info("batch normalisation goes layer by layer, since its kernels cannot be built: %s", error)
        return None
    return batch_norm_relu


def _try_out(fused: Callable[..., Tensor]) -> None:
    with torch.enable_grad(), torch.autocast("cuda", enabled=False):
        x = torch.randn(4, 8, 3, 3, device="cuda", dtype=torch.bfloat16)
        x = x.to(memory_format=torch.channels_last).requires_grad_()
        weight, bias = (torch.ones(8, device="cuda", requires_grad=True) for _ in range(2))
        running = torch.zeros(8, device="cuda"), torch.ones(8, device="cuda")
        counter = torch.zeros(1, dtype=torch.int32, device="cuda")
        made = fused(x, weight, bias, None, running, counter, (0.1, 1e-5, True))
        torch.autograd.backward(made.float().sum())
        wanted = functional.relu(functional.batch_norm(x.float(), None, None, weight, bias, training=True))
        if not torch.allclose(made.float(), wanted, atol=0.05):
            raise ArithmeticError("they compute something else")

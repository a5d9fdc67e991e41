"""Several small networks of one shape as one: the examples of all lie one after another, a layer is a kernel for all.

Weights are `(members, …)`. Only layers that are understood here can be merged: `mergeable` says of a network whether.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from easel.match.zoo.canvas import Head, Stack
from easel.match.zoo.gpu_layers import MaxPool, conv_kernels, ready
from easel.match.zoo.norm import WIDE, Norm, fits_kernels, kernels
from easel.match.zoo.residual import ResidualBlock
from easel.match.zoo.strided_conv import in_half_precision

WIDEST = 64
"""Convolutions of more channels fill a GPU better one network beside another."""
WEIGHTLESS = (MaxPool, nn.Identity, nn.Dropout, nn.Flatten, nn.AdaptiveAvgPool2d)


def mergeable(network: nn.Module) -> bool:
    """Whether `forward_together` understands every layer of it."""
    return type(network) is Stack and all(_understood(part) for part in _layers(network))


def _layers(network: nn.Module) -> Iterator[nn.Module]:
    for part in network.children():
        if type(part) in (nn.Sequential, Stack, ResidualBlock, Head):
            yield from _layers(part)
        else:
            yield part


def _understood(part: nn.Module) -> bool:
    if isinstance(part, nn.Conv2d):
        square = part.kernel_size == (3, 3) and part.stride == (1, 1) and part.padding == (1, 1)
        plain = part.groups == 1 and part.bias is None and part.dilation == (1, 1)
        return square and plain and max(part.in_channels, part.out_channels) <= WIDEST
    return type(part) in (*WEIGHTLESS, Norm, nn.Linear)


class MergedForward:
    """What several networks make of their examples; `skeleton` is one of them, of which only the layers are asked."""

    def __init__(self, skeleton: nn.Module, members: int, buffers: Mapping[str, Tensor]) -> None:
        self._skeleton, self._members, self._buffers = skeleton, members, buffers
        self._counters: dict[str, Tensor] = {}

    def __call__(self, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """`(members · n, c, h, w)` → `(members, n, outputs)`."""
        found = self._run(self._skeleton, "", weights, x)
        return found.view(self._members, -1, *found.shape[1:])

    def _run(self, part: nn.Module, name: str, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
        if isinstance(part, ResidualBlock):
            made = x
            *before, last = part.body.named_children()
            for key, layer in before:
                made = self._run(layer, f"{name}body.{key}.", weights, made)
            (conv_key, conv), (norm_key, norm) = last[1].named_children()
            inside = f"{name}body.{last[0]}."
            made = self._run(conv, f"{inside}{conv_key}.", weights, made)
            beside = self._run(part.shortcut, f"{name}shortcut.", weights, x)
            assert isinstance(norm, Norm)
            return self._norm(norm, f"{inside}{norm_key}.", weights, made, beside)
        if isinstance(part, nn.Sequential | Head):
            for key, layer in part.named_children():
                x = self._run(layer, f"{name}{key}.", weights, x)
            return x
        if isinstance(part, nn.Conv2d):
            return self._conv(weights[f"{name}weight"], x)
        if isinstance(part, Norm):
            return self._norm(part, name, weights, x, None)
        if isinstance(part, nn.Linear):
            rows = x.view(self._members, -1, x.shape[1])
            made = torch.baddbmm(
                weights[f"{name}bias"].unsqueeze(1),
                rows.to(weights[f"{name}weight"].dtype),
                weights[f"{name}weight"].transpose(1, 2),
            )
            return made.flatten(0, 1)
        found: Tensor = part(x)
        return found

    def _conv(self, weight: Tensor, x: Tensor) -> Tensor:
        if in_half_precision(x) and (conv := conv_kernels()) is not None:
            return conv(ready(x), weight)
        pairs = zip(x.view(self._members, -1, *x.shape[1:]).unbind(0), weight.unbind(0), strict=True)
        return torch.cat([functional.conv2d(one, of, padding=1) for one, of in pairs])

    def _norm(
        self, part: Norm, name: str, weights: Mapping[str, Tensor], x: Tensor, beside: Tensor | None
    ) -> Tensor:
        weight, bias = weights[f"{name}weight"], weights[f"{name}bias"]
        running = self._buffers[f"{name}running_mean"], self._buffers[f"{name}running_var"]
        assert part.momentum is not None
        if part.training and fits_kernels(x) and (fused := kernels()) is not None:
            if name not in self._counters:
                blocks = self._members * -(-x.shape[1] // WIDE)
                self._counters[name] = torch.zeros(blocks, dtype=torch.int32, device=x.device)
            if beside is not None:
                beside = beside.to(x.dtype).contiguous(memory_format=torch.channels_last)
            settings = (part.momentum, part.eps, part.relu)
            return fused(x, weight, bias, beside, running, self._counters[name], settings)
        pixels = x.view(self._members, -1, *x.shape[1:])
        mean, variance = running
        if part.training:
            variance, mean = torch.var_mean(pixels.float(), dim=(1, 3, 4), correction=0)
            with torch.no_grad():
                count = pixels[0].numel() // pixels.shape[2]
                running[0].lerp_(mean, part.momentum)
                running[1].lerp_(variance * (count / max(1, count - 1)), part.momentum)
        scale = weight * torch.rsqrt(variance + part.eps)
        shift = bias - mean * scale
        sides = (self._members, 1, -1, 1, 1)
        made = torch.addcmul(shift.view(sides), pixels, scale.view(sides)).to(x.dtype).flatten(0, 1)
        if beside is not None:
            made = made + beside
        return functional.relu(made) if part.relu else made

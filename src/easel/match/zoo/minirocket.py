"""MiniRocket (Dempster, Schmidt & Webb 2021): fixed convolutions, shares of positive values, a linear layer.

The 84 kernels of length 9 hold six weights −1 and three weights 2. Each is applied at several dilations; for
each pair, biases are quantiles of the convolution of a training series, and the feature is the share of
positions where convolution > bias (PPV). A ridge classifier or regressor on top is exact and quick.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

KERNELS = torch.tensor(
    [[2.0 if position in chosen else -1.0 for position in range(9)] for chosen in combinations(range(9), 3)]
)
"""`(84, 9)`."""


class MiniRocket(nn.Module):
    """`(n, channels, length), mask → (n, outputs)`; all its numbers are buffers, so it stores and exports."""

    biases: Tensor
    weight: Tensor
    intercept: Tensor
    centre: Tensor
    spread: Tensor
    mix: Tensor

    def __init__(
        self, channels: int, length: int, outputs: int, features: int = 9_996, seed: int = 0
    ) -> None:
        super().__init__()
        self.dilations, counts = _dilations(length, max(1, features // 84))
        self.per_dilation = counts
        total = 84 * sum(counts)
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("mix", _channel_mixes(channels, len(self.dilations), generator))
        self.register_buffer("biases", torch.zeros(84, sum(counts)))
        self.register_buffer("centre", torch.zeros(total))
        self.register_buffer("spread", torch.ones(total))
        self.register_buffer("weight", torch.zeros(total, outputs))
        self.register_buffer("intercept", torch.zeros(outputs))

    def _convolve(self, x: Tensor, place: int) -> Tensor:
        """`(n, 84, length)` at the place-th dilation; each kernel sees its own random sum of channels."""
        dilation = self.dilations[place]
        mixed = torch.einsum("kc,ncl->nkl", self.mix[place], x)
        kernels = KERNELS.to(x).unsqueeze(1)
        return nn.functional.conv1d(mixed, kernels, padding=4 * dilation, dilation=dilation, groups=84)

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        """PPV features `(n, 84 · Σ counts)`; positions past a series' end do not count."""
        weights = mask / mask.sum(1, keepdim=True).clamp(min=1.0)
        parts = []
        start = 0
        for place, count in enumerate(self.per_dilation):
            convolved = self._convolve(x, place)
            for k in range(start, start + count):
                above = (convolved > self.biases[:, k].view(1, 84, 1)).to(x.dtype)
                parts.append(torch.einsum("nkl,nl->nk", above, weights))
            start += count
        return torch.cat(parts, dim=1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return ((self.features(x, mask) - self.centre) / self.spread) @ self.weight + self.intercept

    @torch.no_grad()
    def fit_biases(self, x: Tensor, mask: Tensor, generator: torch.Generator) -> None:
        """Quantiles at golden-ratio spacing of the convolutions of randomly chosen training series."""
        start = 0
        for place, count in enumerate(self.per_dilation):
            chosen = torch.randint(len(x), (84,), generator=generator)
            convolved = self._convolve(x[chosen], place)[torch.arange(84), torch.arange(84)]
            quantiles = torch.frac(torch.arange(start + 1, start + count + 1) * 0.6180339887)
            for kernel in range(84):
                own = convolved[kernel][mask[chosen[kernel]] > 0]
                self.biases[kernel, start : start + count] = torch.quantile(own, quantiles.to(own))
            start += count

    @torch.no_grad()
    def fit_linear(self, features: Tensor, targets: NDArray[Any], alpha: float) -> None:
        """Ridge on standardised features `(n, f)` for `targets (n, outputs)`, by the dual when n < f."""
        x = features.double().numpy()
        self.centre.copy_(torch.from_numpy(x.mean(0)))
        self.spread.copy_(torch.from_numpy(np.maximum(x.std(0), 1e-6) * np.sqrt(x.shape[1])))
        x = (x - self.centre.numpy()) / self.spread.numpy()
        y = np.asarray(targets, dtype=np.float64)
        offset = y.mean(0)
        gram = x @ x.T
        gram[np.diag_indices_from(gram)] += alpha
        weight = x.T @ np.linalg.solve(gram, y - offset)
        self.weight.copy_(torch.from_numpy(weight))
        self.intercept.copy_(torch.from_numpy(offset))


def _dilations(length: int, budget: int) -> tuple[list[int], list[int]]:
    """Dilations 2^0, 2^1, … that fit the length, and how many biases each gets (`budget` in all)."""
    most = max(0.0, np.log2(max(1.0, (length - 1) / 8)))
    steps = np.floor(2 ** np.linspace(0, most, min(32, budget))).astype(int)
    dilations, counts = np.unique(steps, return_counts=True)
    share = np.maximum(1, np.floor(counts * budget / counts.sum())).astype(int)
    return dilations.tolist(), share.tolist()


def _channel_mixes(channels: int, dilations: int, generator: torch.Generator) -> Tensor:
    """`(dilations, 84, channels)` of zeros and ones: a random subset of channels for every kernel."""
    if channels == 1:
        return torch.ones(dilations, 84, 1)
    mixes = torch.zeros(dilations, 84, channels)
    most = min(channels, 9)
    for place in range(dilations):
        for kernel in range(84):
            size = int(2 ** (torch.rand(1, generator=generator) * np.log2(most + 1)).item())
            chosen = torch.randperm(channels, generator=generator)[: max(1, size)]
            mixes[place, kernel, chosen] = 1.0
    return mixes

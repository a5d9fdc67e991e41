"""MiniRocket (Dempster, Schmidt & Webb 2021): fixed convolutions, shares of positive values, a ridge on top.

The 84 kernels of length 9 hold six weights −1 and three weights 2. Each is applied at several dilations; for
each pair, biases are quantiles of the convolution of a training series, and the feature is the share of
positions where convolution > bias (PPV). Every second pair looks only at positions where the kernel lies within
the series, the others at all positions with zeros around it, as the paper has it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from easel.match.zoo.ridge_head import RidgeHead

KERNELS = torch.tensor(
    [[2.0 if position in chosen else -1.0 for position in range(9)] for chosen in combinations(range(9), 3)]
)
"""`(84, 9)`."""
COUNT = len(KERNELS)


class MiniRocket(nn.Module):
    """`(n, channels, length), mask → (n, outputs)`."""

    biases: Tensor
    mix: Tensor

    def __init__(
        self, channels: int, length: int, outputs: int, features: int = 9_996, seed: int = 0
    ) -> None:
        super().__init__()
        self.dilations, self.per_dilation = spread_dilations(length, max(1, features // COUNT))
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("mix", channel_mixes(channels, len(self.dilations), generator))
        self.register_buffer("biases", torch.zeros(COUNT, sum(self.per_dilation)))
        self.head = RidgeHead(COUNT * sum(self.per_dilation), outputs)

    def convolve(self, x: Tensor, place: int) -> Tensor:
        """`(n, 84, length)` at the place-th dilation; each kernel sees its own random sum of channels."""
        dilation = self.dilations[place]
        mixed = torch.einsum("kc,ncl->nkl", self.mix[place], x)
        kernels = KERNELS.to(x).unsqueeze(1)
        return nn.functional.conv1d(mixed, kernels, padding=4 * dilation, dilation=dilation, groups=COUNT)

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        """PPV features `(n, 84 · Σ counts)`; positions past a series' end do not count."""
        parts = []
        start = 0
        for place, count in enumerate(self.per_dilation):
            convolved = self.convolve(x, place)
            weights = place_weights(mask, self.dilations[place], place)
            for k in range(start, start + count):
                above = (convolved > self.biases[:, k].view(1, COUNT, 1)).to(x.dtype)
                parts.append((above * weights).sum(2))
            start += count
        return torch.cat(parts, dim=1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.head(self.features(x, mask))
        return out

    @torch.no_grad()
    def fit_biases(self, x: Tensor, mask: Tensor, generator: torch.Generator) -> None:
        """Quantiles of the convolutions of randomly chosen training series, spaced by the golden ratio over all
        kernels and dilations, so that no two kernels look at the same share.
        """
        start = 0
        for place, count in enumerate(self.per_dilation):
            chosen = torch.randint(len(x), (COUNT,), generator=generator)
            convolved = self.convolve(x[chosen], place)[torch.arange(COUNT), torch.arange(COUNT)]
            number = COUNT * start + torch.arange(COUNT * count, dtype=torch.float64).reshape(COUNT, count)
            quantiles = torch.frac((number + 1) * 0.6180339887498949)
            for kernel in range(COUNT):
                own = convolved[kernel][mask[chosen[kernel]] > 0]
                self.biases[kernel, start : start + count] = torch.quantile(own, quantiles[kernel].to(own))
            start += count


def place_weights(mask: Tensor, dilation: int, place: int) -> Tensor:
    """`(n, 84, length)`: how much each position counts for each kernel, 1 in all; every second kernel, beginning with
    the first or the second in turn, counts only positions where it lies within the series.
    """
    pad = 4 * dilation
    inside = mask
    if pad < mask.shape[1]:
        before = nn.functional.pad(mask, (pad, 0))[:, : mask.shape[1]]
        after = nn.functional.pad(mask, (0, pad))[:, pad:]
        both = mask * before * after
        # A series too short for the kernel counts as a whole.
        inside = torch.where(both.sum(1, keepdim=True) > 0, both, mask)
    choices = torch.stack([mask, inside], dim=1)
    choices = choices / choices.sum(2, keepdim=True).clamp(min=1.0)
    parity = (torch.arange(COUNT, device=mask.device) + place) % 2
    return choices[:, parity]


def spread_dilations(length: int, budget: int) -> tuple[list[int], list[int]]:
    """Dilations 2^0, 2^1, … that fit the length, and how many biases each gets (`budget` in all)."""
    most = max(0.0, np.log2(max(1.0, (length - 1) / 8)))
    steps = np.floor(2 ** np.linspace(0, most, min(32, budget))).astype(int)
    dilations, counts = np.unique(steps, return_counts=True)
    share = np.maximum(1, np.floor(counts * budget / counts.sum())).astype(int)
    for place in range(max(0, budget - int(share.sum()))):
        share[place % len(share)] += 1
    return dilations.tolist(), share.tolist()


def channel_mixes(channels: int, dilations: int, generator: torch.Generator) -> Tensor:
    """`(dilations, 84, channels)` of zeros and ones: a random subset of channels for every kernel."""
    if channels == 1:
        return torch.ones(dilations, COUNT, 1)
    mixes = torch.zeros(dilations, COUNT, channels)
    most = min(channels, 9)
    for place in range(dilations):
        for kernel in range(COUNT):
            size = int(2 ** (torch.rand(1, generator=generator) * np.log2(most + 1)).item())
            chosen = torch.randperm(channels, generator=generator)[: max(1, size)]
            mixes[place, kernel, chosen] = 1.0
    return mixes

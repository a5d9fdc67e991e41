"""MultiRocket (Tan et al. 2022) and Hydra (Dempster, Schmidt & Webb 2023) side by side, a ridge on top.

MultiRocket: MiniRocket's convolutions of the series and of its differences, four summaries of each: the share of
positive values, their mean, their mean place and their longest stretch. Hydra: groups of random kernels compete at
every position; how often each wins and loses, and by how much, are the features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from easel.match.zoo.minirocket import COUNT, MiniRocket, place_weights
from easel.match.zoo.ridge_head import RidgeHead

POOLS = 4
GROUPS, COMPETING = 32, 8


class MultiRocketHydra(nn.Module):
    """`(n, channels, length), mask → (n, outputs)`."""

    def __init__(
        self, channels: int, length: int, outputs: int, features: int = 6_048, seed: int = 0
    ) -> None:
        super().__init__()
        self.plain = MiniRocket(channels, length, 1, features, seed)
        self.steps = MiniRocket(channels, max(2, length - 1), 1, features, seed + 1)
        self.hydra = Hydra(channels, length, seed)
        rockets = sum(POOLS * COUNT * sum(one.per_dilation) for one in (self.plain, self.steps))
        self.head = RidgeHead(rockets + self.hydra.features, outputs)

    def _changes(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return torch.diff(x, dim=2), mask[:, 1:]

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        """`(n, f)`"""
        changes = self._changes(x, mask)
        return torch.cat(
            [_pooled(self.plain, x, mask), _pooled(self.steps, *changes), self.hydra(x, mask)], dim=1
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.head(self.features(x, mask))
        return out

    @torch.no_grad()
    def fit_biases(self, x: Tensor, mask: Tensor, generator: torch.Generator) -> None:
        self.plain.fit_biases(x, mask, generator)
        self.steps.fit_biases(*self._changes(x, mask), generator)


def _pooled(rocket: MiniRocket, x: Tensor, mask: Tensor) -> Tensor:
    """The four summaries for every kernel, dilation and bias."""
    length = x.shape[2]
    places = torch.linspace(0.0, 1.0, length).to(x)
    numbers = torch.arange(length, device=x.device).view(1, 1, -1)
    parts = []
    start = 0
    for place, count in enumerate(rocket.per_dilation):
        convolved = rocket.convolve(x, place)
        weights = place_weights(mask, rocket.dilations[place], place)
        counted = weights > 0
        for k in range(start, start + count):
            over = convolved - rocket.biases[:, k].view(1, COUNT, 1)
            positive = (over > 0) & counted
            shares = torch.where(positive, weights, 0.0)
            share = shares.sum(2)
            some = share.clamp(min=1e-9)
            mean = (shares * over).sum(2) / some
            where = torch.where(share > 0, (shares * places).sum(2) / some, -1.0)
            last_gap = torch.where(positive, -1, numbers).cummax(2).values
            stretch = torch.where(positive, numbers - last_gap, 0).amax(2).to(x.dtype) / length
            parts += [share, mean, where, stretch]
        start += count
    return torch.cat(parts, dim=1)


class Hydra(nn.Module):
    """`(n, channels, length), mask → (n, features)`: half the groups see the series, half its differences."""

    kernels: Tensor
    mix: Tensor

    def __init__(self, channels: int, length: int, seed: int) -> None:
        super().__init__()
        most = max(0, int(torch.tensor(max(1.0, (length - 1) / 8)).log2().item()))
        self.dilations = [2**power for power in range(most + 1)]
        generator = torch.Generator().manual_seed(seed + 17)
        half = GROUPS // 2
        kernels = torch.randn(len(self.dilations), 2, half * COMPETING, 9, generator=generator)
        kernels = kernels - kernels.mean(-1, keepdim=True)
        self.register_buffer("kernels", kernels / kernels.abs().sum(-1, keepdim=True))
        seen = min(channels, 9)
        mix = torch.zeros(len(self.dilations), 2, half, channels)
        for one in mix.view(-1, channels):
            one[torch.randperm(channels, generator=generator)[:seen]] = 1.0 / seen
        self.register_buffer("mix", mix)
        self.features = 2 * len(self.dilations) * GROUPS * COMPETING

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        half = GROUPS // 2
        views = [(x, mask), (torch.diff(x, dim=2), mask[:, 1:])]
        parts = []
        for number, dilation in enumerate(self.dilations):
            for side, (values, there) in enumerate(views):
                mixed = torch.einsum("gc,ncl->ngl", self.mix[number, side], values)
                spread = mixed.repeat_interleave(COMPETING, dim=1)
                kernels = self.kernels[number, side].to(x).unsqueeze(1)
                found = nn.functional.conv1d(
                    spread, kernels, padding=4 * dilation, dilation=dilation, groups=half * COMPETING
                ).view(len(x), half, COMPETING, -1)
                weights = there.unsqueeze(1)
                best, won = found.max(2)
                lost = found.argmin(2)
                empty = torch.zeros(len(x), half, COMPETING).to(x)
                wins = empty.scatter_add(2, won, best * weights).clamp(min=0).sqrt()
                losses = empty.scatter_add(2, lost, weights.expand_as(best)).sqrt()
                parts += [wins.flatten(1), losses.flatten(1)]
        return torch.cat(parts, dim=1)

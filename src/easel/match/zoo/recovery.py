"""Picture to picture: auto-encoder, U-Net, and the critic that makes a U-Net a pix2pix GAN.

`(n, channels, h, w) → (n, out_channels, H, W)`: the networks work at the input's size and resize at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from easel.match.zoo.canvas import scaled


def _block(channels: int, out: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(inplace=True),
        nn.Conv2d(out, out, 3, padding=1, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(inplace=True),
    )


class HourGlass(nn.Module):
    """Down by halves, up again: with `skips` a U-Net (Ronneberger et al. 2015), without an auto-encoder."""

    def __init__(
        self, shape: tuple[int, int, int], out: tuple[int, int, int], width: float, *, skips: bool
    ) -> None:
        super().__init__()
        self.skips = skips
        self.size = out[1:]
        levels = max(1, min(3, min(shape[1:]).bit_length() - 2))
        sizes = [scaled(32 * 2**level, width) for level in range(levels + 1)]
        self.stem = _block(shape[0], sizes[0])
        self.down = nn.ModuleList(_block(sizes[i], sizes[i + 1], stride=2) for i in range(levels))
        self.up = nn.ModuleList(
            _block(sizes[i + 1] + (sizes[i] if skips else 0), sizes[i]) for i in reversed(range(levels))
        )
        self.last = nn.Conv2d(sizes[0], out[0], 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = [self.stem(x)]
        for step in self.down:
            kept.append(step(kept[-1]))
        x = kept.pop()
        for step in self.up:
            skip = kept.pop()
            x = nn.functional.interpolate(x, size=skip.shape[2:], mode="nearest")
            x = step(torch.cat([x, skip], dim=1) if self.skips else x)
        x = self.last(x)
        if tuple(x.shape[2:]) != self.size:
            x = nn.functional.interpolate(x, size=self.size, mode="bilinear", align_corners=False)
        return x


class Critic(nn.Module):
    """Judges patches of (input, output) pairs, as in pix2pix (Isola et al. 2017)."""

    def __init__(self, channels: int, width: float) -> None:
        super().__init__()
        size = scaled(32, width)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, size, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(size, 2 * size, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * size, 1, 3, padding=1),
        )

    def forward(self, source: Tensor, answer: Tensor) -> Tensor:
        if source.shape[2:] != answer.shape[2:]:
            source = nn.functional.interpolate(source, size=answer.shape[2:], mode="nearest")
        judged: Tensor = self.layers(torch.cat([source, answer], dim=1))
        return judged

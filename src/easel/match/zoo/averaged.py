"""A small modern network that answers with the moving average of its weights, over a few views of each picture."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from easel.match.zoo.canvas import Canvas, ResidualBody, Stack, kaiming, scaled

DECAY = 0.995
"""How much of the average stays at each step, once it has begun."""
VIEWS = ("one", "mirrored", "shifted")
SCALE = 0.125
"""Of the last layer's answers: without it large widths start far too sure of themselves."""


def resnet9(canvas: Canvas, outputs: int, width: float, views: str = "one") -> nn.Module:
    """ResNet-9: two residual blocks between convolutions, as the fastest recipes for small pictures use it."""
    layers: list[nn.Module] = []
    if not canvas.small:
        layers += [canvas.conv(scaled(64, width), 5, 4)]
    layers += [canvas.conv(scaled(64, width), 3)]
    for channels, residual in ((128, True), (256, False), (512, True)):
        out = scaled(channels, width)
        layers += [canvas.conv(out, 3), canvas.pool()]
        if residual:
            layers += [ResidualBody(canvas.conv(out, 3), canvas.conv(out, 3))]
    layers += [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(canvas.channels, outputs, bias=False)]
    return Averaged(kaiming(Stack(*layers, Scaled(SCALE))), views)


class Scaled(nn.Module):
    """Its input times a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self._factor


class Averaged(nn.Module):
    """Trains `now`; answers with `average`, to which every training step adds a little of what was learned.

    Both are part of the network, so that checkpoints, recorded steps and stored models hold them without knowing.
    """

    taken: Tensor
    reads_its_weights = True

    def __init__(self, network: nn.Module, views: str) -> None:
        super().__init__()
        if views not in VIEWS:
            raise ValueError(f"unknown views {views}")
        self.now, self.views = network, views
        self.average = copy.deepcopy(network).requires_grad_(False)
        self.register_buffer("taken", torch.zeros(()))

    def train(self, mode: bool = True) -> Averaged:
        super().train(mode)
        self.average.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self._follow()
            trained: Tensor = self.now(x)
            return trained
        found: Tensor = self.average(x)
        for other in _other_views(x, self.views):
            found = found + self.average(other)
        return found / (1 + len(_other_views(x, self.views)))

    @torch.no_grad()
    def _follow(self) -> None:
        """Moves the average; at first quickly, so that it forgets where it began."""
        self.taken += 1
        weight = torch.clamp(10.0 / (9.0 + self.taken), max=1.0, min=1 - DECAY)
        now = [*self.now.parameters(), *(b for b in self.now.buffers() if b.is_floating_point())]
        then = [*self.average.parameters(), *(b for b in self.average.buffers() if b.is_floating_point())]
        change = torch._foreach_sub([one.detach() for one in now], then)
        torch._foreach_mul_(change, weight)
        torch._foreach_add_(then, change)


def _other_views(x: Tensor, views: str) -> list[Tensor]:
    if views == "mirrored":
        return [x.flip(3)]
    if views == "shifted" and min(x.shape[2:]) >= 8:
        padded = functional.pad(x, (1, 1, 1, 1), mode="replicate")
        height, width = x.shape[2:]
        return [
            padded[:, :, top : top + height, left : left + width]
            for top, left in ((0, 1), (2, 1), (1, 0), (1, 2))
        ]
    return []

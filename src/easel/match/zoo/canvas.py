"""Architectures were drawn for 224 × 224 photographs; a canvas lets them adapt to a 8 × 8 one.

A canvas follows the spatial size while a network is being built: a step that would shrink the picture
below what the rest of the network needs keeps its weights and loses its stride.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from easel.match.zoo.gpu_layers import MaxPool, convolution
from easel.match.zoo.norm import ConvRelu, Norm

SMALL = 64
"""Below this side length a network keeps the resolution in its stem, as its authors do for CIFAR."""


@dataclass
class Canvas:
    """`channels × height × width` at the point where the network under construction has arrived."""

    channels: int
    height: int
    width: int

    @property
    def small(self) -> bool:
        return min(self.height, self.width) < SMALL

    @property
    def smallest_side(self) -> int:
        return min(self.height, self.width)

    def conv(
        self, out: int, kernel: int, stride: int = 1, *, norm: bool = True, relu: bool = True
    ) -> nn.Module:
        """Same-padded convolution, batch norm, ReLU; a stride is dropped where it would leave < 2 pixels."""
        stride = stride if self.smallest_side >= 2 * stride else 1
        parts: list[nn.Module] = [
            convolution(self.channels, out, kernel, stride)
            if norm
            else ConvRelu(self.channels, out, kernel, stride=stride, padding=kernel // 2)
            if relu
            else nn.Conv2d(self.channels, out, kernel, stride=stride, padding=kernel // 2)
        ]
        if norm:
            parts.append(Norm(out, relu=relu))
        self.channels = out
        self._shrink(stride)
        return nn.Sequential(*parts)

    def pool(self, kernel: int = 2, stride: int = 2, *, keep: int = 2) -> nn.Module:
        """Max pooling, or nothing where fewer than `keep` pixels would remain on the shorter side."""
        if self.smallest_side < keep * stride:
            return nn.Identity()
        self._shrink(stride, odd_kernel=kernel % 2 == 1)
        return MaxPool(kernel, stride, (kernel - 1) // 2)

    def _shrink(self, stride: int, odd_kernel: bool = True) -> None:
        """Returns the new size: with same padding an odd kernel rounds it up, an even one (2 × 2 pooling) down."""
        slack = stride - 1 if odd_kernel else 0
        self.height = (self.height + slack) // stride
        self.width = (self.width + slack) // stride


def scaled(channels: int, width: float, multiple: int = 8) -> int:
    """`channels · width`, rounded to a multiple that tensor cores like and never below it."""
    return max(multiple, round(channels * width / multiple) * multiple)


def kaiming(network: nn.Module) -> nn.Module:
    """He initialisation of every convolution and linear layer: lets deep plain networks start to learn."""
    for part in network.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return network


class Stack(nn.Sequential):
    """Layers one after the other; its argument is called `x`, as that of every network of the zoo."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x


class Head(nn.Module):
    """Global average pooling, then one linear layer: `(n, c, h, w) → (n, outputs)`."""

    def __init__(self, channels: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(channels, outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        pooled: Tensor = self.layers(x)
        return pooled


class ResidualBody(nn.Sequential):
    """`x + layers(x)`, for layers that keep the shape."""

    def forward(self, x: Tensor) -> Tensor:
        made = x
        for layer in self:
            made = layer(made)
        return x + made

"""Plain stacks of convolutions: AlexNet, BN-AlexNet, VGG-16, NIN, SqueezeNet.

`build(canvas, outputs, width)` returns `(n, c, h, w) → (n, outputs)`; `width` scales every layer.
"""

from __future__ import annotations

from torch import Tensor, nn

from easel.match.zoo.canvas import Canvas, Head, Stack, kaiming, scaled
from easel.match.zoo.norm import joined


def _dense_head(canvas: Canvas, outputs: int, width: float, grid: int) -> list[nn.Module]:
    side_h, side_w = min(grid, canvas.height), min(grid, canvas.width)
    hidden = scaled(4096, width)
    return [
        # Exact division is needed for ONNX; a canvas that is already small enough is left as it is.
        nn.AdaptiveAvgPool2d((side_h, side_w)),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(canvas.channels * side_h * side_w, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, outputs),
    ]


def _alexnet(canvas: Canvas, outputs: int, width: float, norm: bool) -> nn.Module:
    stem_kernel, stem_stride = (5, 1) if canvas.small else (11, 4)
    layers: list[nn.Module] = [canvas.conv(scaled(64, width), stem_kernel, stem_stride, norm=norm)]
    layers.append(canvas.pool(3, 2))
    layers.append(canvas.conv(scaled(192, width), 5, norm=norm))
    layers.append(canvas.pool(3, 2))
    layers.append(canvas.conv(scaled(384, width), 3, norm=norm))
    layers.append(canvas.conv(scaled(256, width), 3, norm=norm))
    layers.append(canvas.conv(scaled(256, width), 3, norm=norm))
    layers.append(canvas.pool(3, 2))
    return kaiming(Stack(*layers, *_dense_head(canvas, outputs, width, grid=6)))


def alexnet(canvas: Canvas, outputs: int, width: float) -> nn.Module:
    """Krizhevsky et al. 2012, in its one-tower form; no normalisation, as published."""
    return _alexnet(canvas, outputs, width, norm=False)


def bn_alexnet(canvas: Canvas, outputs: int, width: float) -> nn.Module:
    """AlexNet with batch normalisation after every convolution."""
    return _alexnet(canvas, outputs, width, norm=True)


def vgg16(canvas: Canvas, outputs: int, width: float) -> nn.Module:
    """Simonyan & Zisserman 2014, configuration D; batch norm, without which it rarely starts from scratch."""
    layers: list[nn.Module] = []
    for repeats, channels in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        layers.extend(canvas.conv(scaled(channels, width), 3) for _ in range(repeats))
        layers.append(canvas.pool())
    return kaiming(Stack(*layers, *_dense_head(canvas, outputs, width, grid=7)))


def nin(canvas: Canvas, outputs: int, width: float) -> nn.Module:
    """Lin et al. 2013: each convolution is followed by two 1 × 1 layers; global average at the end."""
    if canvas.small:
        plan = [(5, 1, (192, 160, 96)), (5, 1, (192, 192, 192)), (3, 1, (192, 192, 192))]
    else:
        plan = [(11, 4, (96,) * 3), (5, 1, (256,) * 3), (3, 1, (384,) * 3), (3, 1, (1024,) * 3)]
    layers: list[nn.Module] = []
    for stage, (kernel, stride, channels) in enumerate(plan):
        layers.append(canvas.conv(scaled(channels[0], width), kernel, stride))
        layers.extend(canvas.conv(scaled(c, width), 1) for c in channels[1:])
        if stage + 1 < len(plan):
            layers += [canvas.pool(3, 2), nn.Dropout(0.3)]
    return kaiming(Stack(*layers, Head(canvas.channels, outputs)))


class Fire(nn.Module):
    """Squeeze to few channels by 1 × 1, then expand by 1 × 1 and 3 × 3 side by side."""

    def __init__(self, canvas: Canvas, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = canvas.conv(squeeze, 1)
        self.one = canvas.conv(expand, 1)
        canvas.channels = squeeze
        self.three = canvas.conv(expand, 3)
        canvas.channels = 2 * expand

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze(x)
        return joined((self.one, self.three), x)


def squeezenet(canvas: Canvas, outputs: int, width: float) -> nn.Module:
    """SqueezeNet 1.1, Iandola et al. 2016, with batch normalisation."""
    layers: list[nn.Module] = [canvas.conv(scaled(64, width), 3, 1 if canvas.small else 2), canvas.pool(3, 2)]
    for group in (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256))):
        for squeeze, expand in group:
            layers.append(Fire(canvas, scaled(squeeze, width), scaled(expand, width)))
        if group[0][0] < 48:
            layers.append(canvas.pool(3, 2))
    return kaiming(Stack(*layers, Head(canvas.channels, outputs, dropout=0.3)))

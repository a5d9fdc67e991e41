"""The registry of image networks, in the order of the paper's figure 6 with the small convnet first."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from torch import nn

from easel.match.zoo.canvas import Canvas
from easel.match.zoo.plain import alexnet, bn_alexnet, nin, squeezenet, vgg16
from easel.match.zoo.residual import convnet, googlenet, resnet18, resnet50

Builder = Callable[[Canvas, int, float], nn.Module]

IMAGE_NETWORKS: MappingProxyType[str, Builder] = MappingProxyType(
    {
        "convnet": convnet,
        "alexnet": alexnet,
        "resnet18": resnet18,
        "resnet50": resnet50,
        "googlenet": googlenet,
        "squeezenet": squeezenet,
        "vgg16": vgg16,
        "nin": nin,
        "bn_alexnet": bn_alexnet,
    }
)


def build_image_network(
    name: str, shape: tuple[int, int, int], outputs: int, width: float = 1.0
) -> nn.Module:
    """The network `name` for pictures of `shape = (channels, height, width)`, any size from 1 × 1 on."""
    return IMAGE_NETWORKS[name](Canvas(*shape), outputs, width)

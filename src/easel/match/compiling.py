"""When a training's kernels are worth more preparation: a search for faster convolutions, our own kernels, a compiler.

Measured on an H200 (docs/results/gpu_loop.md). A compiler's time counts as part of the trial: only long ones take it.
"""

from __future__ import annotations

from torch import nn

SEARCH_STEPS = 80_000
"""cuDNN tries its algorithms in trainings of so many steps: a small network has steps of a millisecond, of which the
search saves a fifth, and takes about ten seconds in a new process."""
FIRST_S, LAYER_S = 8.0, 1.0
"""What a compiler takes where nothing of it is stored: at the beginning, and for each layer with weights."""
SAVED = 0.09
"""The least share of the time that compiled networks with batch normalisation saved."""
AT_LEAST = 1.5
"""So many times its price a compiler must save: trials stop early, and what it saves is a guess."""

KERNELS_FIRST_S, KERNEL_S = 3.0, 0.45
"""What building our own kernels takes where none are kept: at the beginning, and for each layer with weights (two
resnet18 together 22 s, docs/results/gpu_service.md)."""
KERNELS_SAVED = 0.3
"""The share of the time that they save in small networks, where they save most."""


def searching_pays(steps: int) -> bool:
    """Whether a training of so many steps is given a search for faster convolutions."""
    return steps >= SEARCH_STEPS


def compiling_s(network: nn.Module) -> float:
    """Returns the seconds that a compiler is thought to take for a network."""
    layers = sum(isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d) for part in network.modules())
    return FIRST_S + LAYER_S * layers


def compiling_pays(network: nn.Module, left_s: float) -> bool:
    """Whether a compiler is worth its time for a network that trains for `left_s` more seconds as it is.

    Without batch normalisation there is nothing to merge: AlexNet gained nothing.
    """
    merges = any(isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d) for part in network.modules())
    return merges and SAVED * left_s > AT_LEAST * compiling_s(network)


def kernels_pay(network: nn.Module, left_s: float) -> bool:
    """Whether building our own kernels is worth its time for a network that trains `left_s` seconds without them."""
    layers = sum(1 for part in network.modules() if next(part.parameters(recurse=False), None) is not None)
    return KERNELS_SAVED * left_s > AT_LEAST * (KERNELS_FIRST_S + KERNEL_S * layers)

"""The mean loss of a network over examples that it does not learn from; on a GPU recorded once and replayed."""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

from easel.match.device_data import Batch, Data
from easel.match.train_steps import Objective, autocast

log = logging.getLogger("easel.match")
RECORDED_EPOCHS = 8
"""Fewer validations than this do not repay the recording."""


class Validation:
    """One network's validation; `epochs`: how many there will be at most."""

    def __init__(self, network: nn.Module, data: Data, objective: Objective, epochs: int) -> None:
        self._network, self._data, self._objective = network, data, objective
        device = next(network.parameters()).device
        self._record = device.type == "cuda" and data.device == device and epochs >= RECORDED_EPOCHS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._found = torch.zeros((), device=device)

    def loss(self) -> Tensor:
        """Returns the mean loss, on the device."""
        self._network.eval()
        if not self._record:
            return mean_loss(self._network, self._data, self._objective)
        if self._graph is None:
            self._graph = self._recorded()
        if self._graph is None:
            return mean_loss(self._network, self._data, self._objective)
        self._graph.replay()
        return self._found.clone()

    def _recorded(self) -> torch.cuda.CUDAGraph | None:
        """Returns the validation as a graph; None, from now on, where it cannot be recorded."""
        graph = torch.cuda.CUDAGraph()
        try:
            mean_loss(
                self._network, self._data, self._objective
            )  # libraries and algorithms are ready after it
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                self._found.copy_(mean_loss(self._network, self._data, self._objective))
        except RuntimeError as error:
            log.info("validation goes kernel by kernel, since it cannot be recorded: %s", error)
            torch.cuda.synchronize()
            self._record = False
            return None
        return graph


@torch.no_grad()
def mean_loss(network: nn.Module, data: Data, objective: Objective) -> Tensor:
    """Returns the mean loss over `data`, on the network's device."""
    network.eval()
    device = next(network.parameters()).device
    total = torch.zeros((), device=device)
    size = at_once(data.inputs, device)
    for start in range(0, len(data), size):
        rows = torch.arange(start, min(start + size, len(data)), device=data.device)
        inputs, targets = data.take(rows, device)
        with autocast(device):
            total += objective.loss(network, inputs, targets, training=False).float() * len(rows)
    return total / max(1, len(data))


def at_once(inputs: Batch, device: torch.device) -> int:
    """Returns how many examples go through a network together when nothing is learned from them."""
    if device.type == "cpu":
        return 512
    numbers = sum(tensor[:1].numel() for tensor in inputs.values())
    return max(64, min(4096, (64 << 20) // max(1, numbers)))

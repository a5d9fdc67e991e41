"""The learned part of network models: a bag of networks whose answers are averaged, stored as safetensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from easel.match.candidate import Candidate
from easel.match.encode.bits import BitEncoder
from easel.match.encode.images import PictureEncoder
from easel.match.encode.series import SeriesEncoder
from easel.match.examples import Object
from easel.match.loop import predict
from easel.match.networks import Wiring, build_network
from easel.match.targets import Classes, Values


def tensors(source: Any, inputs: Sequence[Object]) -> dict[str, Tensor]:
    """What a network reads."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in source(inputs).items()}


@dataclass(frozen=True)
class NetworkBody:
    """One network, or one for each fold where data were few."""

    networks: tuple[nn.Module, ...]
    source: Any
    target: Any

    @property
    def kind(self) -> str:
        return "network"

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        batch = tensors(self.source, inputs)
        answers = [finish(predict(network, batch), self.target) for network in self.networks]
        mean: NDArray[Any] = np.mean(answers, axis=0)
        return mean

    def save(self, folder: Path) -> None:
        for number, network in enumerate(self.networks):
            state = {
                name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()
            }
            save_file(state, folder / f"weights-{number}.safetensors")


def finish(raw: Tensor, target: Any) -> NDArray[Any]:
    """A network's raw answer in the user's own terms: probabilities, units, pixel values."""
    match target:
        case Classes():
            return torch.softmax(raw.double(), dim=1).numpy()
        case Values():
            return target.unscale(raw.double().numpy())
        case PictureEncoder(normalisation=scale):
            return unscale_channels(raw.numpy(), scale.mean, scale.deviation)
        case SeriesEncoder(normalisation=scale):
            going = torch.sigmoid(raw[:, -1:]).numpy()
            return np.concatenate(
                [unscale_channels(raw[:, :-1].numpy(), scale.mean, scale.deviation), going], axis=1
            )
        case BitEncoder():
            return torch.sigmoid(raw).numpy()
    raise AssertionError(f"no way to finish {target}")


def unscale_channels(raw: NDArray[Any], mean: Sequence[float], deviation: Sequence[float]) -> NDArray[Any]:
    """`(n, channels, …)` back to the user's unit."""
    shape = (1, -1) + (1,) * (raw.ndim - 2)
    unscaled: NDArray[Any] = raw * np.reshape(deviation, shape) + np.reshape(mean, shape)
    return unscaled


def load_networks(folder: Path, candidate: Candidate, source: Any, target: Any) -> NetworkBody:
    networks = []
    for path in sorted(folder.glob("weights-*.safetensors"), key=lambda p: int(p.stem.split("-")[1])):
        network = build_network(candidate, Wiring(source, target))
        network.load_state_dict(load_file(path))
        networks.append(network.eval())
    return NetworkBody(tuple(networks), source, target)

"""Checkpoints of a training: one safetensors file that a thread writes while the next epoch runs."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

log = logging.getLogger("easel.match")


@dataclass
class TrainingState:
    """How far a training is."""

    epoch: int = 0
    best_epoch: int = -1
    best_loss: float = math.inf
    curve: list[tuple[float, float]] = field(default_factory=list)
    steps: int = 0
    """Of the epoch after those, where it was stopped in the middle; each of `batch` examples."""
    batch: int = 0

    def waited(self, patience: int) -> bool:
        """Whether nothing got better for so many epochs: it is over."""
        return self.epoch - self.best_epoch > patience and self.epoch > 0


Learners = Mapping[str, tuple[nn.Module, torch.optim.Optimizer]]
"""What learns in a trial, by the prefix of its names in a checkpoint."""


def snapshot(learners: Learners, best: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns copies of all tensors of a training, where they are: the training may go on at once."""
    tensors = {f"best.{name}": tensor for name, tensor in best.items()}
    for who, (network, optimiser) in learners.items():
        tensors |= {f"{who}now.{name}": tensor for name, tensor in network.state_dict().items()}
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"{who}adam.{index}.{key}": value for key, value in values.items()}
    copied = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    if any(tensor.device.type == "cuda" for tensor in copied.values()):
        torch.cuda.current_stream().synchronize()  # others read the copies on streams of their own
    return copied


class Checkpoint(NamedTuple):
    """Where it goes, and what it holds."""

    path: Path
    tensors: dict[str, Tensor]
    state: TrainingState


class CheckpointWriter:
    """Writes checkpoints behind the training, and no more of them than a tenth of its time allows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._next_at = 0.0

    @property
    def due(self) -> bool:
        """Whether a checkpoint given now would be written at once."""
        busy = self._thread is not None and self._thread.is_alive()
        return not busy and self._clock() >= self._next_at

    def write(self, *given: Checkpoint) -> None:
        """Starts to write, one after the other; waits for those before."""
        if not given:
            return
        self.close()
        noted = [(one, _note(one.state)) for one in given]
        self._thread = threading.Thread(target=self._save_all, args=(noted,), name="checkpoint")
        self._thread.start()

    def close(self) -> None:
        """Waits until everything is on the disk, as far as there is room for it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _save_all(self, noted: Sequence[tuple[Checkpoint, str]]) -> None:
        began = self._clock()
        for one, note in noted:
            _save(one.path, one.tensors, note)
        self._next_at = self._clock() + 9 * (self._clock() - began)


def _note(state: TrainingState) -> str:
    """Returns how far the training is by now: it goes on while this is written."""
    return json.dumps([state.epoch, state.best_epoch, state.best_loss, state.curve, state.steps, state.batch])


def _save(path: Path, tensors: dict[str, Tensor], note: str) -> None:
    """Replaces the file in one step: a trial killed while writing keeps the one before, and so does one that finds
    the disk full. It goes on learning; only whoever continues it has further to go."""
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(_on_host(tensors), partial, {"state": note})
        partial.replace(path)
    except (OSError, SafetensorError) as error:
        log.warning("the checkpoint %s could not be written: %s", path.name, error)
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _on_host(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors in the host's memory; copies from a GPU go beside its work, not between."""
    device = next(iter(tensors.values())).device
    if device.type == "cpu":
        return tensors
    beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(beside):
        return {name: tensor.cpu() for name, tensor in tensors.items()}


def restore(path: Path, learners: Learners) -> tuple[TrainingState, dict[str, Tensor]]:
    """Returns how far the training was and its best weights, after putting the learners back to that moment."""
    with safe_open(path, framework="pt") as stored:
        state = _state(stored.metadata()["state"])
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    put_back(tensors, learners)
    return state, below("best.", tensors)


def _state(note: str) -> TrainingState:
    """Returns what a note says; those of earlier versions say less."""
    epoch, best_epoch, best_loss, curve, *rest = json.loads(note)
    steps, batch = [*rest, 0, 0][:2]
    return TrainingState(epoch, best_epoch, best_loss, [(a, b) for a, b in curve], int(steps), int(batch))


def restored(path: Path, learners: Learners) -> tuple[TrainingState, dict[str, Tensor]] | None:
    """Restores as `restore` does; None where the file is damaged or foreign, and the learners stay as they were."""
    before = snapshot(learners, {})
    try:
        return restore(path, learners)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        log.warning("the checkpoint %s cannot be read, the training begins anew: %s", path.name, error)
        put_back(before, learners)
        return None


def put_back(tensors: Mapping[str, Tensor], learners: Learners) -> None:
    """Gives networks and optimisers the tensors of a snapshot."""
    for who, (network, optimiser) in learners.items():
        network.load_state_dict(below(f"{who}now.", tensors))
        adam: dict[int, dict[str, Tensor]] = {}
        for name, tensor in below(f"{who}adam.", tensors).items():
            index, key = name.split(".")
            adam.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": adam})
        _lay_as_weights(optimiser)


def _lay_as_weights(optimiser: torch.optim.Optimizer) -> None:
    """Lays what an optimiser remembers of each weight as the weight itself lies: a fused one on a GPU needs it."""
    for weight, known in optimiser.state.items():
        for key, tensor in known.items():
            if (
                isinstance(tensor, Tensor)
                and tensor.shape == weight.shape
                and tensor.stride() != weight.stride()
            ):
                known[key] = torch.empty_like(weight).copy_(tensor)


def put_back_in_place(before: Mapping[str, Tensor], learners: Learners) -> None:
    """Gives networks and optimisers the values of a snapshot where they lie: a graph reads these tensors and no others.

    What an optimiser has learned since and the snapshot does not know becomes zero."""
    for who, (network, optimiser) in learners.items():
        network.load_state_dict(below(f"{who}now.", before))
        for index, values in optimiser.state_dict()["state"].items():
            for key, tensor in values.items():
                earlier = before.get(f"{who}adam.{index}.{key}")
                tensor.zero_() if earlier is None else tensor.copy_(earlier)


def state_in(path: Path | None) -> TrainingState:
    """Returns how far the training of a checkpoint is; at the beginning where there is none that can be read."""
    if path is None or not path.exists():
        return TrainingState()
    try:
        with safe_open(path, framework="pt") as stored:
            return _state(stored.metadata()["state"])
    except (SafetensorError, OSError, ValueError, TypeError, KeyError):
        return TrainingState()


def below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

"""The one training loop: AdamW, warm-up and cosine, early stopping on validation, mixed precision on GPUs.

Every epoch seeds its own randomness from (seed, epoch), so that a trial resumed from a checkpoint takes the
same path as one that was never stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

Batch = Mapping[str, Tensor]
Progress = Callable[[float, float], None]
"""`(share done, validation loss)`."""


class Diverged(ArithmeticError):
    """The loss stopped being a number before anything was learned."""


class Objective(Protocol):
    """What is minimised. `training` lets an objective that learns itself (a critic) take its own step."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor: ...


@runtime_checkable
class Judging(Protocol):
    """An objective with a critic of its own: a trial that goes on needs it as it was."""

    critic: nn.Module
    optimiser: torch.optim.Optimizer


@dataclass(frozen=True)
class Schedule:
    """`patience`: epochs without a better validation loss before stopping."""

    epochs: int
    lr: float
    batch: int = 64
    weight_decay: float = 1e-2
    warm_up: float = 0.1
    patience: int = 15


@dataclass(frozen=True)
class Fit:
    """How the training went; the network holds the weights of `best_epoch`."""

    best_epoch: int
    best_loss: float
    epochs: int
    stopped: str
    curve: tuple[tuple[float, float], ...] = ()
    """Training and validation loss of each epoch."""
    resumed: int = 0
    """Epochs that an earlier attempt had done."""


@dataclass(frozen=True)
class Data:
    """Inputs and targets, each a mapping from names to tensors whose first side is the example.

    `rows` are those that count, all where there are none: folds share the tensors, which may lie on the disk.
    """

    inputs: Batch
    targets: Batch
    rows: Tensor | None = None

    def __len__(self) -> int:
        return len(next(iter(self.targets.values()))) if self.rows is None else len(self.rows)

    def only(self, rows: Tensor) -> Data:
        """The same tensors, of which only `rows` count."""
        return Data(self.inputs, self.targets, rows)

    def take(self, places: Tensor, device: torch.device) -> tuple[Batch, Batch]:
        rows = places if self.rows is None else self.rows[places]

        def pick(tensors: Batch) -> Batch:
            return {name: tensor[rows].to(device, non_blocking=True) for name, tensor in tensors.items()}

        return pick(self.inputs), pick(self.targets)


def fit(
    network: nn.Module,
    train: Data,
    validate: Data,
    objective: Objective,
    schedule: Schedule,
    *,
    seed: int,
    out_of_time: Callable[[], bool],
    augment: Callable[[Batch], Batch] = lambda batch: batch,
    checkpoint: Path | None = None,
    progress: Progress = lambda share, loss: None,
) -> Fit:
    """Train `network` in place. After every epoch `out_of_time` is asked and a checkpoint written."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    network.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    optimiser = torch.optim.AdamW(network.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay)
    # A last batch of one example would break batch normalisation: a remainder is left out of its epoch.
    batch = min(schedule.batch, max(2, len(train) // 4))
    steps = max(1, len(train) // batch)
    learners: dict[str, tuple[nn.Module, torch.optim.Optimizer]] = {"": (network, optimiser)}
    if isinstance(objective, Judging):
        learners["critic."] = (objective.critic.to(device), objective.optimiser)
    state = _State()
    best = _weights(network)
    if checkpoint is not None and checkpoint.exists():
        state, best = _restore(checkpoint, learners)
    resumed = state.epoch
    stopped = "finished"
    # An attempt that had stopped by itself is over: one more epoch would be another path than it took.
    waited = state.epoch - state.best_epoch > schedule.patience
    if waited:
        stopped = "no better for a while"
    for epoch in range(state.epoch, state.epoch if waited else schedule.epochs):
        torch.manual_seed(seed * 100_003 + epoch)
        network.train()
        order = torch.randperm(len(train))
        total = torch.zeros((), device=device)
        for step in range(steps):
            rate = _rate(schedule, (epoch * steps + step) / (schedule.epochs * steps))
            for group in optimiser.param_groups:
                group["lr"] = rate
            inputs, targets = train.take(order[step * batch : (step + 1) * batch], device)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                loss = objective.loss(network, augment(inputs), targets, training=True)
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
            total += loss.detach().float()
        found = evaluate(network, validate, objective)
        if not math.isfinite(found):
            stopped = f"diverged in epoch {epoch + 1}"
            break
        if found < state.best_loss - 1e-6:
            state.best_loss, state.best_epoch, best = found, epoch, _weights(network)
        state.epoch = epoch + 1
        state.curve.append((total.item() / steps, found))
        progress(state.epoch / schedule.epochs, found)
        if state.epoch - state.best_epoch > schedule.patience:
            stopped = "no better for a while"
        elif out_of_time():
            stopped = "out of time"
        if checkpoint is not None:
            _save(checkpoint, learners, best, state)
        if stopped != "finished":
            break
    if state.best_epoch < 0:
        raise Diverged(f"training {stopped} before it learned anything; a smaller learning rate may help")
    network.load_state_dict(best)
    network.eval()
    return Fit(state.best_epoch, state.best_loss, state.epoch, stopped, tuple(state.curve), resumed)


@torch.no_grad()
def evaluate(network: nn.Module, data: Data, objective: Objective, batch: int = 512) -> float:
    """The mean loss over `data`."""
    network.eval()
    device = next(network.parameters()).device
    total = 0.0
    for start in range(0, len(data), batch):
        rows = torch.arange(start, min(start + batch, len(data)))
        inputs, targets = data.take(rows, device)
        total += objective.loss(network, inputs, targets, training=False).item() * len(rows)
    return total / max(1, len(data))


@torch.no_grad()
def predict(network: nn.Module, inputs: Batch, batch: int = 512) -> Tensor:
    """The network's raw answers, on the CPU, in order."""
    network.eval()
    device = next(iter([*network.parameters(), *network.buffers()])).device
    count = len(next(iter(inputs.values())))
    parts = []
    for start in range(0, count, batch):
        part = {name: tensor[start : start + batch].to(device) for name, tensor in inputs.items()}
        parts.append(network(**part).float().cpu())
    return torch.cat(parts)


def _rate(schedule: Schedule, share: float) -> float:
    """Linear warm-up, then half a cosine down to 1 % of the peak."""
    if share < schedule.warm_up:
        return schedule.lr * (0.05 + 0.95 * share / schedule.warm_up)
    rest = (share - schedule.warm_up) / (1 - schedule.warm_up)
    return schedule.lr * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * rest)))


def _weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


@dataclass
class _State:
    epoch: int = 0
    best_epoch: int = -1
    best_loss: float = math.inf
    curve: list[tuple[float, float]] = field(default_factory=list)


Learners = Mapping[str, tuple[nn.Module, torch.optim.Optimizer]]
"""What learns in a trial, by the prefix of its names in a checkpoint."""


def _save(path: Path, learners: Learners, best: dict[str, Tensor], state: _State) -> None:
    """One safetensors file, replaced in one step: a trial killed while writing keeps the one before."""
    tensors = {f"best.{name}": tensor.contiguous() for name, tensor in best.items()}
    for who, (network, optimiser) in learners.items():
        tensors |= {f"{who}now.{name}": tensor.contiguous() for name, tensor in network.state_dict().items()}
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"{who}adam.{index}.{key}": value.contiguous() for key, value in values.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    metadata = {"state": json.dumps([state.epoch, state.best_epoch, state.best_loss, state.curve])}
    save_file({name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, partial, metadata)
    partial.replace(path)


def _restore(path: Path, learners: Learners) -> tuple[_State, dict[str, Tensor]]:
    with safe_open(path, framework="pt") as stored:
        epoch, best_epoch, best_loss, curve = json.loads(stored.metadata()["state"])
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    for who, (network, optimiser) in learners.items():
        network.load_state_dict(_below(f"{who}now.", tensors))
        adam: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _below(f"{who}adam.", tensors).items():
            index, key = name.split(".")
            adam.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": adam})
    best = _below("best.", tensors)
    return _State(epoch, best_epoch, best_loss, [(a, b) for a, b in curve]), best


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

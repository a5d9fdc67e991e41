"""The one training loop: AdamW, warm-up and cosine, early stopping on validation, mixed precision on GPUs.

Every epoch seeds its own randomness from (seed, epoch), so that a trial resumed from a checkpoint takes the
same path as one that was never stopped. The host reads one pair of numbers an epoch from the GPU and nothing else.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from easel.match.checkpoint import (
    Checkpoint,
    CheckpointWriter,
    Learners,
    TrainingState,
    put_back,
    put_back_in_place,
    restored,
    snapshot,
)
from easel.match.compiling import compiling_pays, kernels_pay, searching_pays
from easel.match.device import training_device
from easel.match.device_data import Batch, Data
from easel.match.kinds import CAN_GO_ON, GAVE_WAY, OUT_OF_TIME, SLICE_ENDED
from easel.match.train_steps import (
    GRAPH_STEPS,
    Augment,
    EagerSteps,
    Objective,
    Steps,
    own_optimiser,
    recorded,
)
from easel.match.validation import Validation, at_once
from easel.match.zoo.kernel_use import kernels_wanted, use_kernels

log = logging.getLogger("easel.match")
Progress = Callable[[float, float], None]
"""`(share done, validation loss)`."""
LARGEST_BATCH = 1024
TIMED = 3
"""When this epoch begins, it is known how long one takes."""
PART_STEPS = 50
"""After so many steps of a longer epoch it is asked whether to stop there."""
STEPS_AN_EPOCH = 32
"""On a GPU batches grow as long as an epoch keeps about so many steps."""
STEPS_IN_ALL = 3_000
"""… and in a long training further, to half as many steps an epoch, as long as the whole keeps so many."""


class Diverged(ArithmeticError):
    """The loss stopped being a number before anything was learned."""


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
    chooses: bool = True
    """Whether the epoch with the least validation loss is kept; else the last one, as one-cycle recipes want it."""
    until: int | None = None
    """Stop after this epoch with a checkpoint; rates fall as if all epochs followed, so that it can be gone on with."""

    @property
    def last(self) -> int:
        """The epoch after which it stops at the latest."""
        return self.epochs if self.until is None else min(self.until, self.epochs)

    def better(self, found: float, best: float) -> bool:
        """Whether the weights of an epoch with this validation loss are kept."""
        return found < best - 1e-6 or not self.chooses

    def rates(self, epoch: int, steps: int, scale: float = 1.0) -> Sequence[float]:
        """Returns the learning rate of each step of an epoch: linear warm-up, then half a cosine to 1 % of the peak."""
        return [scale * self._rate((epoch + step / steps) / self.epochs) for step in range(steps)]

    def _rate(self, share: float) -> float:
        if share < self.warm_up:
            return self.lr * (0.05 + 0.95 * share / self.warm_up)
        rest = (share - self.warm_up) / (1 - self.warm_up)
        return self.lr * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * rest)))


@dataclass(frozen=True)
class TrainingRun:
    """How the training went; the network holds the weights of `best_epoch`."""

    best_epoch: int
    best_loss: float
    epochs: int
    stopped: str
    curve: tuple[tuple[float, float], ...] = ()
    """Training and validation loss of each epoch."""
    resumed: int = 0
    """Epochs that an earlier attempt had done."""
    reached: float = 1.0
    """The share of its epochs that is done; a training that stopped by itself is done."""
    halved: int = 0
    """How often batches were halved for want of GPU memory."""


def batch_for(batch: int, examples: int, device: torch.device, epochs: int = 0) -> int:
    """Returns the size of a training batch: larger on a GPU with many examples, smaller where they are few.

    A last batch of one example would break batch normalisation: a remainder is left out of its epoch.
    """
    if device.type == "cuda" and examples > STEPS_AN_EPOCH * batch:
        batch = min(LARGEST_BATCH, 2 ** int(math.log2(examples / STEPS_AN_EPOCH)))
        if batch < LARGEST_BATCH and epochs * (examples // (2 * batch)) >= STEPS_IN_ALL:
            batch *= 2
    return min(batch, max(2, examples // 4))


def fit(
    network: nn.Module,
    train: Data,
    validate: Data,
    objective: Objective,
    schedule: Schedule,
    *,
    seed: int,
    out_of_time: Callable[[], bool],
    augment: Augment = lambda batch: batch,
    checkpoint: Path | None = None,
    progress: Progress = lambda share, loss: None,
    device: torch.device | None = None,
    give_way: Callable[[], bool] = lambda: False,
) -> TrainingRun:
    """Trains `network` in place. After every epoch `out_of_time` and `give_way` are asked and a checkpoint is written
    behind; a checkpoint that cannot be read is as good as none."""
    training = _Training(network, train, objective, schedule, augment, device or training_device())
    state, best = TrainingState(), _weights(network)
    if checkpoint is not None and checkpoint.exists():
        state, best = restored(checkpoint, training.learners) or (state, best)
    resumed, stopped = state.epoch, "finished"
    # An attempt that had stopped by itself is over: one more epoch would be another path than it took.
    waited = state.waited(schedule.patience)
    if waited:
        stopped = "no better for a while"
    writer = CheckpointWriter()
    until = schedule.last
    validation = Validation(network, validate.resident(training.device), objective, until - state.epoch)
    try:
        if not waited and state.epoch >= until < schedule.epochs:
            stopped = SLICE_ENDED  # it is as far as this slice goes, and not over
        for epoch in range(state.epoch, state.epoch if waited else until):
            trained = training.epoch(epoch, seed, state, lambda: give_way() or out_of_time())
            if state.steps:
                # Asked in the middle of a long epoch: it goes on from this very step.
                stopped = GAVE_WAY if give_way() else OUT_OF_TIME
                if state.best_epoch < 0:
                    found = float(validation.loss())
                    state.best_loss, state.best_epoch, best = found, epoch, _weights(network)
                if checkpoint is not None:
                    writer.write(Checkpoint(checkpoint, snapshot(training.learners, best), state))
                break
            lost, found = torch.stack([trained, validation.loss()]).tolist()
            if not math.isfinite(found):
                stopped = f"diverged in epoch {epoch + 1}"
                break
            if schedule.better(found, state.best_loss):
                state.best_loss, state.best_epoch, best = found, epoch, _weights(network)
            state.epoch = epoch + 1
            state.curve.append((lost, found))
            progress(state.epoch / schedule.epochs, found)
            if state.epoch - state.best_epoch > schedule.patience:
                stopped = "no better for a while"
            elif give_way():
                stopped = GAVE_WAY
            elif out_of_time():
                stopped = OUT_OF_TIME
            if stopped == "finished" and state.epoch == until < schedule.epochs:
                stopped = SLICE_ENDED
            last = stopped != "finished" or state.epoch == schedule.epochs
            if checkpoint is not None and (last or writer.due):
                writer.write(Checkpoint(checkpoint, snapshot(training.learners, best), state))
            if stopped != "finished":
                break
    finally:
        writer.close()
    if state.best_epoch < 0 or not math.isfinite(state.best_loss):
        raise Diverged(f"training {stopped} before it learned anything; a smaller learning rate may help")
    network.load_state_dict(best)
    network.eval()
    done = state.epoch + state.steps / training.steps
    reached = done / schedule.epochs if stopped in CAN_GO_ON else 1.0
    curve = tuple(state.curve)
    return TrainingRun(
        state.best_epoch, state.best_loss, state.epoch, stopped, curve, resumed, reached, training.halved
    )


class _Training:
    """A network with its optimiser and its examples, where it trains. Out of GPU memory, it halves its batches."""

    def __init__(
        self,
        network: nn.Module,
        train: Data,
        objective: Objective,
        schedule: Schedule,
        augment: Augment,
        device: torch.device,
    ) -> None:
        self.device, self._schedule, self._network = device, schedule, network
        on_gpu = device.type == "cuda"
        self._optimiser = own_optimiser(network, schedule.lr, schedule.weight_decay, device)
        self.learners: Learners = {"": (network, self._optimiser)}
        if isinstance(objective, Judging):
            self.learners = {**self.learners, "critic.": (objective.critic.to(device), objective.optimiser)}
        self._train = train.resident(device)
        self._batch = batch_for(schedule.batch, len(train), device, schedule.epochs)
        self.halved = 0
        self._begun: list[float] = []
        self._eager = EagerSteps(network, self._optimiser, self._train, objective, augment)
        self._steps: Steps | None = None
        self._recordable = (
            on_gpu
            and self._train.device == device
            and not isinstance(objective, Judging)
            and schedule.epochs * (len(train) // self._batch) >= GRAPH_STEPS
        )

    @property
    def steps(self) -> int:
        """How many an epoch has."""
        return max(1, len(self._train) // self._batch)

    def epoch(self, number: int, seed: int, state: TrainingState, stop: Callable[[], bool]) -> Tensor:
        """Trains for one epoch, or for what `state` leaves of it; returns the mean loss, on the device.

        Every few steps of a longer epoch `stop` is asked: where it says so, `state.steps` is how many are done.
        """
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            self._begun.append(time.perf_counter())
        if len(self._begun) == TIMED:
            # The epoch before this one was recorded already: so long takes each that is left.
            left_s = (self._schedule.last - number) * (self._begun[-1] - self._begun[-2])
            if self._recordable and not kernels_wanted() and kernels_pay(self._network, left_s):
                log.info("building kernels for the network, which has about %.0f s to train", left_s)
                use_kernels(True)
                self._steps = self._recorded(self.steps)
            if self._recordable and compiling_pays(self._network, left_s):
                self._compile(left_s)
        may_run_out = on_gpu and (self._steps is None or self._steps is self._eager)
        held = snapshot(self.learners, {}) if may_run_out else {}
        while True:
            try:
                return self._parts(number, seed, state, stop)
            except torch.cuda.OutOfMemoryError:
                if self._batch <= 2 or not held:
                    raise
            # Not before the exception is gone, which holds what the step had allocated.
            self._eager.as_it_is()
            self._steps, self._batch, self.halved = None, self._batch // 2, self.halved + 1
            log.warning("out of GPU memory: the training goes on with batches of %d", self._batch)
            torch.cuda.empty_cache()
            put_back(held, self.learners)

    def _compile(self, left_s: float) -> None:
        """Goes on with a compiled network; as before, where it cannot be compiled or has no room for that."""
        log.info("compiling the network, which has about %.0f s to train", left_s)
        held, before = snapshot(self.learners, {}), self._steps
        try:
            self._eager.compile()
            self._network.train()
            self._steps = self._recorded(self.steps)
            if self._steps is not self._eager:
                return
        except Exception as error:  # noqa: BLE001  whatever a compiler says: the network trains as it is
            log.info("the network trains as it is, since it cannot be compiled: %s", error)
            torch.cuda.synchronize()
            put_back_in_place(held, self.learners)
        self._eager.as_it_is()
        self._steps = before

    def _parts(self, number: int, seed: int, state: TrainingState, stop: Callable[[], bool]) -> Tensor:
        self._network.train()
        steps = self.steps
        if self._steps is None:
            self._steps = self._recorded(steps) if self._recordable else self._eager
        torch.manual_seed(seed * 100_003 + number)
        # Drawn where it is used: the host need not wait, and nothing is copied.
        order = torch.randperm(len(self._train), device=self._train.device)[: steps * self._batch]
        order = order.view(steps, self._batch)
        rates = self._schedule.rates(number, steps, math.sqrt(max(1.0, self._batch / self._schedule.batch)))
        # Batches may have another size on another device: what counts is how many examples were seen.
        begun = min(state.steps * (state.batch or self._batch) // self._batch, steps - 1)
        total, done = torch.zeros((), device=order.device), begun
        while done < steps:
            if done:
                torch.manual_seed((seed * 100_003 + number) * 1_009 + done)
            end = min((done // PART_STEPS + 1) * PART_STEPS, steps)
            lost = self._steps.run(order[done:end], rates[done:end])
            total = total.to(lost.device) + lost * (end - done)
            done = end
            if done == steps:
                break
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # else it asks long before they are done
            if stop():
                state.steps, state.batch = done, self._batch
                return total / (done - begun)
        state.steps, state.batch = 0, self._batch
        return total / (steps - begun)

    def _recorded(self, steps: int) -> Steps:
        before = snapshot(self.learners, {})

        def undo() -> None:
            put_back_in_place(before, self.learners)

        search = searching_pays(self._schedule.epochs * steps)
        return recorded(self._eager, self._train, self._optimiser, steps, self._batch, undo, search=search)


@torch.no_grad()
def predict(network: nn.Module, inputs: Batch) -> Tensor:
    """Returns the network's raw answers, on the CPU, in order."""
    network.eval()
    device = next(iter([*network.parameters(), *network.buffers()])).device
    count = len(next(iter(inputs.values())))
    size = at_once(inputs, device)
    parts = []
    for start in range(0, count, size):
        part = {name: tensor[start : start + size].to(device) for name, tensor in inputs.items()}
        parts.append(network(**part).float())
    return torch.cat(parts).cpu()


def _weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

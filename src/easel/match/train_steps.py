"""One epoch of training steps: as a CUDA graph where the GPU can replay it, step by step elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from easel.match.device_data import Batch, Data, batches

log = logging.getLogger("easel.match")
CLIP = 5.0
"""Largest norm of all gradients together."""
GRAPH_STEPS = 60
"""Fewer steps than this in a whole training do not repay the capture of a graph."""
Augment = Callable[[Batch], Batch]


class Objective(Protocol):
    """What is minimised. `training` lets an objective that learns itself (a critic) take its own step."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor: ...


class Steps(Protocol):
    """The steps of an epoch."""

    def run(self, places: Tensor, rates: Sequence[float]) -> Tensor:
        """Trains on each row of `places` `(steps, batch)` at its rate; returns the mean loss, on the device."""


def autocast(device: torch.device) -> torch.autocast:
    """Returns mixed precision on GPUs that have it and plain arithmetic elsewhere."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=half_precision(device.type))


@cache
def half_precision(device_type: str) -> bool:
    """Whether such a device computes in bfloat16 itself: GPUs that would only imitate it are faster without."""
    return device_type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def own_optimiser(
    network: nn.Module, rate: float, weight_decay: float, device: torch.device
) -> torch.optim.AdamW:
    """Moves a network to `device` and returns its optimiser, whose steps a graph can hold where it is a GPU."""
    on_gpu = device.type == "cuda"
    layout = torch.channels_last if on_gpu else torch.contiguous_format
    network.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    return torch.optim.AdamW(
        [one for one in network.parameters() if one.requires_grad],
        lr=torch.tensor(rate, device=device) if on_gpu else rate,
        weight_decay=weight_decay,
        fused=on_gpu,
        capturable=on_gpu,
    )


@contextmanager
def searching(search: bool) -> Iterator[None]:
    """Lets cuDNN try its algorithms for convolutions that it meets for the first time."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = search or before
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class WithWeights(nn.Module):
    """A network with weights that are given at the call."""

    def __init__(
        self, network: nn.Module, weights: Mapping[str, Tensor] | tuple[Mapping[str, Tensor], ...]
    ) -> None:
        super().__init__()
        self._weights = weights
        self._network = [network]  # in a list, so that it is no part of this module

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        found: Tensor = functional_call(self._network[0], self._weights, inputs, named)  # type: ignore[arg-type]
        return found


class HalfWeights:
    """The weights of convolutions and linear layers in bfloat16, made of the exact ones by one kernel a step.

    Mixed precision otherwise makes each of them, and each gradient back, by a kernel of its own: the same numbers, and
    a tenth of the kernels of a small network.
    """

    def __init__(self, network: nn.Module) -> None:
        of = {
            id(one): one
            for part in network.modules()
            if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d)
            for one in part.parameters(recurse=False)
            if one.requires_grad
        }
        names = {name: one for name, one in network.named_parameters() if id(one) in of}
        self._exact: list[Tensor] = list(names.values())
        self._half = [one.detach().to(torch.bfloat16).requires_grad_() for one in self._exact]
        self._gradients = [torch.zeros_like(one) for one in self._exact]
        self._others = [one for one in network.parameters() if one.requires_grad and id(one) not in of]
        self.network = WithWeights(network, dict(zip(names, self._half, strict=True)))

    def follow(self) -> None:
        """Makes the half ones anew of the exact ones."""
        with torch.no_grad():
            torch._foreach_copy_(self._half, self._exact)

    def backward(self, loss: Tensor) -> None:
        """Gives all weights their gradients, the exact ones those of their halves."""
        asked = [*self._half, *self._others]
        found: tuple[Tensor | None, ...] = torch.autograd.grad(loss, asked, allow_unused=True)
        halves, others = found[: len(self._half)], found[len(self._half) :]
        used = [(kept, one) for kept, one in zip(self._gradients, halves, strict=True) if one is not None]
        torch._foreach_copy_([kept for kept, _ in used], [one for _, one in used])
        for exact, kept, half in zip(self._exact, self._gradients, halves, strict=True):
            exact.grad = None if half is None else kept
        for one, gradient in zip(self._others, others, strict=True):
            one.grad = gradient


def half_weights(network: nn.Module, device: torch.device) -> HalfWeights | None:
    """Returns half weights where a GPU computes with them; None for a network that looks at its own weights."""
    if not half_precision(device.type) or getattr(network, "reads_its_weights", False):
        return None
    return HalfWeights(network)


class EagerSteps:
    """Step after step, for CPUs, for examples that stay on the host and for objectives with a critic of their own."""

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        train: Data,
        objective: Objective,
        augment: Augment,
    ) -> None:
        self._network, self._optimiser, self._train = network, optimiser, train
        self._objective, self._augment = objective, augment
        self._device = next(network.parameters()).device
        self._learned = [one for one in network.parameters() if one.requires_grad]
        self._half = half_weights(network, self._device)
        self._called = network if self._half is None else self._half.network

    def compile(self) -> None:
        """Compile the network for all further steps, with the same weights."""
        self._called = torch.compile(self._called)  # type: ignore[assignment]

    def as_it_is(self) -> None:
        """Go back to the network that is not compiled."""
        self._called = self._network if self._half is None else self._half.network

    def run(self, places: Tensor, rates: Sequence[float]) -> Tensor:
        total = torch.zeros((), device=self._device)
        for rate, (inputs, targets) in zip(rates, batches(self._train, places, self._device), strict=True):
            for group in self._optimiser.param_groups:
                group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else group.update(lr=rate)
            total += self.step(inputs, targets)
        return total / len(rates)

    def step(self, inputs: Batch, targets: Batch) -> Tensor:
        """Takes one step; returns its loss."""
        if self._half is not None:
            self._half.follow()
        with autocast(self._device):
            loss = self._objective.loss(self._called, self._augment(inputs), targets, training=True)
        self._optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss) if self._half is None else self._half.backward(loss)
        if self._device.type == "cuda":
            self._scaled_step()
        else:
            nn.utils.clip_grad_norm_(self._learned, CLIP)
            self._optimiser.step()
        return loss.detach().float()

    def _scaled_step(self) -> None:
        """Clips inside the optimiser's own pass over the gradients, which saves one of two."""
        gradients = [one.grad for one in self._learned if one.grad is not None]
        norms: tuple[Tensor, ...] = torch._foreach_norm(gradients)
        norm = torch.linalg.vector_norm(torch.stack(norms))
        self._optimiser.grad_scale = (norm / CLIP).clamp(min=1.0)  # type: ignore[attr-defined]
        self._optimiser.step()


class GraphSteps:
    """A whole step, from the choice of its examples to the new weights, recorded once and replayed by the GPU.

    The host only says "again": which examples, which rate and where the loss goes is read from memory on the GPU.
    """

    def __init__(
        self,
        eager: EagerSteps,
        train: Data,
        optimiser: torch.optim.Optimizer,
        steps: int,
        batch: int,
        *,
        search: bool = False,
    ) -> None:
        device = train.device
        self._places = torch.zeros((steps, batch), dtype=torch.long, device=device)
        self._rates = torch.zeros(steps, device=device)
        self._number = torch.zeros(1, dtype=torch.long, device=device)
        self._total = torch.zeros((), device=device)
        rate: Tensor = optimiser.param_groups[0]["lr"]

        def step() -> None:
            rows = self._places.index_select(0, self._number)[0]
            rate.copy_(self._rates.index_select(0, self._number)[0])
            self._total.add_(eager.step(*train.take(rows, device)))
            self._number.add_(1)

        beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(device))
        with searching(search):
            with torch.cuda.stream(beside):  # allocations and algorithms are settled before the recording
                step()
            torch.cuda.current_stream(device).wait_stream(beside)
            self._number.zero_()
            self._graph = torch.cuda.CUDAGraph()
            optimiser.zero_grad(set_to_none=True)
            with torch.cuda.graph(self._graph):
                step()

    def run(self, places: Tensor, rates: Sequence[float]) -> Tensor:
        self._places[: len(places)].copy_(places, non_blocking=True)
        self._rates[: len(rates)].copy_(torch.tensor(rates), non_blocking=True)
        self._number.zero_()
        self._total.zero_()
        for _ in range(len(places)):
            self._graph.replay()
        return self._total / len(rates)


def recorded(
    eager: EagerSteps,
    train: Data,
    optimiser: torch.optim.Optimizer,
    steps: int,
    batch: int,
    undo: Callable[[], None],
    *,
    search: bool = False,
) -> Steps:
    """Returns the steps as a graph, or as they are where they cannot be recorded.

    `undo` puts network and optimiser, in place, back to where they were before the steps that warm up.
    """
    try:
        found: Steps = GraphSteps(eager, train, optimiser, steps, batch, search=search)
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        log.warning("training goes step by step, since it cannot be recorded: %s", error)
        torch.cuda.synchronize()
        found = eager
    undo()
    return found

"""Dozens of small networks of one shape as stacked weights: every step is taken for all at once (`torch.func.vmap`)."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import stack_module_state

from easel.match.device_data import Batch, Data
from easel.match.loop import batch_for
from easel.match.packed_member import PackedMember
from easel.match.train_steps import CLIP, GRAPH_STEPS, Augment, Objective, WithWeights

log = logging.getLogger("easel.match")
BETAS = (0.9, 0.999)
EPSILON = 1e-8
AT_ONCE = 512
"""Validated examples of each member that go through the networks together."""


class StackedPack:
    """Stacked weights `(members, …)` with AdamW over all of them, and one recorded step where the GPU can replay it."""

    def __init__(
        self, members: Sequence[PackedMember], data: Data, objective: Objective, augment: Augment
    ) -> None:
        self._data, self._objective, self._augment = data, objective, augment
        self._schedules = [member.schedule for member in members]
        self.device, self._count = data.device, len(members)
        for member in members:
            member.network.to(self.device)
        self._skeleton = copy.deepcopy(members[0].network).to("meta")
        params, buffers = stack_module_state([member.network for member in members])
        self._params = {name: tensor.detach().clone().requires_grad_() for name, tensor in params.items()}
        self._buffers = {name: tensor.detach().clone() for name, tensor in buffers.items()}
        shortest = min(len(member.train) for member in members)
        self._batch = batch_for(self._schedules[0].batch, shortest, self.device, self._schedules[0].epochs)
        self._steps = max(1, shortest // self._batch)
        self._train = [member.train.to(self.device) for member in members]
        # Folds differ by one example: the last one of a longer fold is left out while losses are compared.
        judged = min(len(member.validate) for member in members)
        self._validate = torch.stack([member.validate[:judged] for member in members]).to(self.device)
        self._mean = {name: torch.zeros_like(one) for name, one in self._params.items()}
        self._square = {name: torch.zeros_like(one) for name, one in self._params.items()}
        self._taken = torch.zeros((), device=self.device)
        shape = (self._steps, self._count)
        self._places = torch.zeros((*shape, self._batch), dtype=torch.long, device=self.device)
        self._rates = torch.zeros(shape, device=self.device)
        self._number = torch.zeros(1, dtype=torch.long, device=self.device)
        self._total = torch.zeros(self._count, device=self.device)
        self._best = {name: tensor.clone() for name, tensor in self._stored.items()}
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tried = self.device.type != "cuda" or self._schedules[0].epochs * self._steps < GRAPH_STEPS

    def keep(self, better: Sequence[int]) -> None:
        """Remembers the weights that these members have now."""
        chosen = torch.tensor(list(better), device=self.device)
        for name, tensor in self._stored.items():
            self._best[name].index_copy_(0, chosen, tensor.index_select(0, chosen))

    def best(self, number: int) -> dict[str, Tensor]:
        """Returns what was last kept of a member."""
        return {name: tensor[number].clone() for name, tensor in self._best.items()}

    @property
    def _stored(self) -> dict[str, Tensor]:
        return {**{name: one.detach() for name, one in self._params.items()}, **self._buffers}

    def epoch(self, number: int, seed: int) -> Tensor:
        """Trains all members for one epoch; returns their mean losses `(members,)`, on the device."""
        self._skeleton.train()
        if not self._tried:
            self._record()
        torch.manual_seed(seed * 100_003 + number)
        scale = math.sqrt(max(1.0, self._batch / self._schedules[0].batch))
        rates = [schedule.rates(number, self._steps, scale) for schedule in self._schedules]
        orders = [
            torch.randperm(len(rows))[: self._steps * self._batch].to(self.device) for rows in self._train
        ]
        rows = torch.stack([rows[order] for rows, order in zip(self._train, orders, strict=True)])
        self._places.copy_(rows.view(self._count, self._steps, self._batch).transpose(0, 1))
        self._rates.copy_(torch.tensor(rates).T)
        self._number.zero_()
        self._total.zero_()
        for _ in range(self._steps):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._step()
        return self._total / self._steps

    def _step(self) -> None:
        rows = self._places.index_select(0, self._number)[0]
        inputs, targets = self._data.take(rows, self.device)
        flat = {name: tensor.flatten(0, 1) for name, tensor in inputs.items()}
        flat = dict(self._augment(flat))
        inputs = {name: tensor.view(self._count, -1, *tensor.shape[1:]) for name, tensor in flat.items()}
        losses = self._losses(inputs, targets, training=True)
        gradients = torch.autograd.grad(losses.sum(), list(self._params.values()))
        self._update(gradients, self._rates.index_select(0, self._number)[0])
        self._total.add_(losses.detach())
        self._number.add_(1)

    def _losses(self, inputs: Batch, targets: Batch, *, training: bool) -> Tensor:
        """Returns the loss of each member `(members,)`."""

        def one(params: dict[str, Tensor], buffers: dict[str, Tensor], x: Batch, y: Batch) -> Tensor:
            return self._objective.loss(
                WithWeights(self._skeleton, (params, buffers)), x, y, training=training
            )

        # Not in bfloat16: batch normalisation of stacked networks has no backward pass for mixed types.
        found: Tensor = torch.func.vmap(one, randomness="different")(
            self._params, self._buffers, dict(inputs), dict(targets)
        )
        return found.float()

    @torch.no_grad()
    def _update(self, gradients: Sequence[Tensor], rates: Tensor) -> None:
        """Takes a step of AdamW for each member at its own rate, its gradients clipped together."""
        squares = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0)
        shrink = (CLIP / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        self._taken.add_(1)
        first, second = 1 - BETAS[0] ** self._taken, 1 - BETAS[1] ** self._taken
        decay = self._schedules[0].weight_decay
        for (name, weight), gradient in zip(self._params.items(), gradients, strict=True):
            sides = (-1,) + (1,) * (weight.ndim - 1)
            rate, clipped = rates.view(sides), gradient * shrink.view(sides)
            mean = self._mean[name].lerp_(clipped, 1 - BETAS[0])
            square = self._square[name].mul_(BETAS[1]).addcmul_(clipped, clipped, value=1 - BETAS[1])
            change = (mean / first) / ((square / second).sqrt() + EPSILON)
            weight.mul_(1 - rate * decay).sub_(rate * change)

    @torch.no_grad()
    def validated(self) -> Tensor:
        """Returns the mean validation loss of each member `(members,)`, on the device."""
        self._skeleton.eval()
        total = torch.zeros(self._count, device=self.device)
        for rows in torch.split(self._validate, AT_ONCE, dim=1):
            inputs, targets = self._data.take(rows, self.device)
            total += self._losses(inputs, targets, training=False) * rows.shape[1]
        return total / self._validate.shape[1]

    def _record(self) -> None:
        """Records the step as a graph; where it cannot be recorded, steps go one by one."""
        self._tried = True
        kept = [self._params, self._buffers, self._mean, self._square]
        before = [{name: one.detach().clone() for name, one in group.items()} for group in kept]
        beside = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(self.device))
        self._places.copy_(
            torch.stack([rows[: self._batch] for rows in self._train])[None].expand_as(self._places)
        )
        try:
            with torch.cuda.stream(beside):
                for _ in range(3):
                    self._number.zero_()
                    self._step()
            torch.cuda.current_stream(self.device).wait_stream(beside)
            self._number.zero_()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step()
            self._graph = graph
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.info("packed training goes step by step, since it cannot be recorded: %s", error)
            torch.cuda.synchronize()
        with torch.no_grad():
            for group, earlier in zip(kept, before, strict=True):
                for name, one in group.items():
                    one.copy_(earlier[name])
            self._taken.zero_()

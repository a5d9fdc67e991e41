"""A few small networks as one: their weights lie in rows, one for each, and a step is a few kernels for all of them.

Against branches of a graph, of which a GPU starts one kernel in a microsecond however idle it is, five folds cost
little more than one. Each row is clipped and moved by itself: one that is no number any more does not touch the others.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from easel.match.checkpoint import TrainingState, restored
from easel.match.compiling import searching_pays
from easel.match.device_data import Batch, Data
from easel.match.loop import batch_for
from easel.match.objectives import BitObjective, ClassObjective, ValueObjective
from easel.match.packed_member import PackedMember, augmented
from easel.match.train_steps import (
    CLIP,
    GRAPH_STEPS,
    Objective,
    autocast,
    half_precision,
    own_optimiser,
    searching,
)
from easel.match.zoo.gpu_layers import adam_kernel, conv_kernels
from easel.match.zoo.merged import MergedForward, mergeable
from easel.match.zoo.norm import kernels

log = logging.getLogger("easel.match")
AT_ONCE = 2048
"""Validated examples of each member that go through its network together."""
BETAS = (0.9, 0.999)
EPSILON = 1e-8


def merges(members: Sequence[PackedMember], objective: Objective, device: torch.device) -> bool:
    """Whether these networks can be one: layers that are understood, a loss that only asks for their answers, and on a
    GPU kernels for it."""
    plain = type(objective) in (ClassObjective, ValueObjective, BitObjective)
    if not plain or not all(mergeable(member.network) for member in members):
        return False
    if device.type == "cpu":
        return True
    return half_precision(device.type) and kernels() is not None and conv_kernels() is not None


class _Answered(nn.Module):
    """A network that has answered already."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self._answer = answer

    def forward(self, **_: Tensor) -> Tensor:
        return self._answer


class _Weights:
    """The weights of all members, in rows `(members, numbers)`, and where layers read them: `(members, …)` each.

    In half precision layers read copies of convolutions and linear layers; normalisations stay exact.
    """

    def __init__(self, networks: Sequence[nn.Module], device: torch.device, *, half: bool) -> None:
        self._shapes = {name: one.shape for name, one in networks[0].named_parameters()}
        members = len(networks)
        of_layers = {
            f"{name}.{key}"
            for name, part in networks[0].named_modules()
            if isinstance(part, nn.Linear | nn.Conv2d)
            for key, _ in part.named_parameters(recurse=False)
        }
        size = sum(shape.numel() for shape in self._shapes.values())
        self.rows = torch.empty(members, size, device=device)
        for row, network in zip(self.rows, networks, strict=True):
            self.put(row, dict(network.named_parameters()))
        # A layer's weights lie together, all members of it; in the rows, all layers of a member do.
        there = torch.arange(members * size, device=device).view(members, size)
        self._from_rows = torch.cat([one.flatten() for one in torch.split(there, self._sizes, dim=1)])
        self._to_rows = torch.argsort(self._from_rows)
        self._read = torch.empty(members * size, device=device)
        self._half = torch.empty_like(self._read, dtype=torch.bfloat16) if half else None
        self._gradients = torch.zeros_like(self._read)
        self.gradient_rows = torch.zeros_like(self.rows)
        exact = self._blocks(self._read)
        halves = exact if self._half is None else self._blocks(self._half)
        self.leaves = {
            name: (halves if name in of_layers else exact)[name].detach().requires_grad_()
            for name in self._shapes
        }
        self._into = list(self._blocks(self._gradients).values())
        self.follow()

    @property
    def copies(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Where each number of the rows is read, and what is read there: exact, and in half precision."""
        return self._to_rows, self._read, self._half

    @property
    def _sizes(self) -> list[int]:
        return [shape.numel() for shape in self._shapes.values()]

    def _blocks(self, flat: Tensor) -> dict[str, Tensor]:
        """Each layer's weights `(members, …)` as they lie in `flat`; the inputs of a convolution lie side by side."""
        members = len(self.rows)
        blocks = torch.split(flat, [members * size for size in self._sizes])
        return {
            name: _shaped(block.view(members, -1), shape)
            for (name, shape), block in zip(self._shapes.items(), blocks, strict=True)
        }

    def put(self, row: Tensor, given: Mapping[str, Tensor]) -> None:
        """Writes one member's weights, or what else has their shapes, into a row."""
        with torch.no_grad():
            for (name, shape), place in zip(self._shapes.items(), torch.split(row, self._sizes), strict=True):
                _shaped(place.view(1, -1), shape)[0].copy_(given[name])

    def taken(self, row: Tensor) -> dict[str, Tensor]:
        """Returns copies of one row's parts by their names."""
        parts = zip(self._shapes.items(), torch.split(row, self._sizes), strict=True)
        return {name: _shaped(part.view(1, -1), shape)[0].clone() for (name, shape), part in parts}

    def follow(self) -> None:
        """Makes what layers read anew of the rows."""
        with torch.no_grad():
            torch.index_select(self.rows.view(-1), 0, self._from_rows, out=self._read)
            if self._half is not None:
                self._half.copy_(self._read)

    def backward(self, losses: Tensor) -> None:
        """Fills `gradient_rows`."""
        found = torch.autograd.grad(losses.sum(), list(self.leaves.values()))
        with torch.no_grad():
            torch._foreach_copy_(self._into, list(found))
            torch.index_select(self._gradients, 0, self._to_rows, out=self.gradient_rows.view(-1))


def _shaped(rows: Tensor, shape: torch.Size) -> Tensor:
    """`(members, numbers)` → `(members, *shape)`."""
    if len(shape) != 4:
        return rows.view(len(rows), *shape)
    out, inside, high, wide = shape
    return rows.view(len(rows), out, high, wide, inside).permute(0, 1, 4, 2, 3)


class MergedPack:
    """Weights in rows with AdamW over them; one recorded step and one recorded validation."""

    def __init__(self, members: Sequence[PackedMember], data: Data, objective: Objective) -> None:
        self._members, self._data, self._objective = members, data, objective
        self.device, count = data.device, len(members)
        self._schedule = members[0].schedule
        networks = [member.network.to(self.device) for member in members]
        self._weights = _Weights(networks, self.device, half=half_precision(self.device.type))
        buffers = [dict(network.named_buffers()) for network in networks]
        self._buffers = {name: torch.stack([one[name] for one in buffers]) for name in buffers[0]}
        self._skeleton = copy.deepcopy(networks[0]).to("meta")
        self._forward = MergedForward(self._skeleton, count, self._buffers)
        rows = self._weights.rows
        self._mean, self._square = torch.zeros_like(rows), torch.zeros_like(rows)
        self._taken = [0] * count
        self._best = rows.clone()
        self._best_buffers = {name: one.clone() for name, one in self._buffers.items()}
        shortest = min(len(member.train) for member in members)
        self._batch = batch_for(self._schedule.batch, shortest, self.device, self._schedule.epochs)
        self._steps = max(1, shortest // self._batch)
        self._train = [member.train.to(self.device) for member in members]
        # Folds differ by one example: the last one of a longer fold is left out while losses are compared.
        judged = min(len(member.validate) for member in members)
        self._validate = torch.stack([member.validate[:judged] for member in members]).to(self.device)
        self._places = torch.zeros((self._steps, count * self._batch), dtype=torch.long, device=self.device)
        self._rates = torch.zeros((self._steps, 3, count, 1), device=self.device)
        self._number = torch.zeros(1, dtype=torch.long, device=self.device)
        self._total = torch.zeros(count, device=self.device)
        self._found = torch.zeros(count, device=self.device)
        on_gpu = self.device.type == "cuda"
        self._record = on_gpu and self._schedule.epochs * self._steps >= GRAPH_STEPS
        self._training: torch.cuda.CUDAGraph | None = None
        self._judging: torch.cuda.CUDAGraph | None = None

    def restore(self) -> list[TrainingState]:
        """Returns how far each member is, after putting it back to its checkpoint where it has one."""
        states = []
        for number, member in enumerate(self._members):
            state = TrainingState()
            if member.checkpoint is not None and member.checkpoint.exists():
                network, given = copy.deepcopy(member.network), member.schedule
                optimiser = own_optimiser(network, given.lr, given.weight_decay, self.device)
                found = restored(member.checkpoint, {"": (network, optimiser)})
                if found is not None:
                    state, best = found
                    self._take_over(number, network, optimiser, best)
            states.append(state)
        self._weights.follow()
        return states

    def _take_over(
        self,
        number: int,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        best: Mapping[str, Tensor],
    ) -> None:
        names = [name for name, _ in network.named_parameters()]
        self._weights.put(self._weights.rows[number], dict(network.named_parameters()))
        self._weights.put(self._best[number], best)
        for name, one in network.named_buffers():
            self._buffers[name][number].copy_(one)
            self._best_buffers[name][number].copy_(best[name])
        state = optimiser.state_dict()["state"]
        if state:
            self._taken[number] = int(state[0]["step"])
            for rows, key in ((self._mean, "exp_avg"), (self._square, "exp_avg_sq")):
                self._weights.put(rows[number], {name: state[i][key] for i, name in enumerate(names)})

    def keep(self, better: Sequence[int]) -> None:
        """Remembers the weights that these members have now."""
        pairs = [(self._best, self._weights.rows)]
        pairs += [(self._best_buffers[name], one) for name, one in self._buffers.items()]
        if len(better) == len(self._members):
            torch._foreach_copy_([kept for kept, _ in pairs], [now for _, now in pairs])
            return
        chosen = torch.tensor(list(better), device=self.device)
        for kept, now in pairs:
            kept.index_copy_(0, chosen, now.index_select(0, chosen))

    def best(self, number: int) -> dict[str, Tensor]:
        """Returns what was last kept of a member."""
        return self._state(self._best[number], self._best_buffers, number)

    def _state(self, row: Tensor, buffers: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
        return {
            **self._weights.taken(row),
            **{name: one[number].clone() for name, one in buffers.items()},
        }

    def snapshot(self, number: int) -> dict[str, Tensor]:
        """Returns all that a checkpoint of a member holds."""
        found = {f"best.{name}": one for name, one in self.best(number).items()}
        now = self._state(self._weights.rows[number], self._buffers, number)
        found |= {f"now.{name}": one for name, one in now.items()}
        moments = {"exp_avg": self._mean, "exp_avg_sq": self._square}
        for key, rows in moments.items():
            parts = self._weights.taken(rows[number]).values()
            found |= {f"adam.{index}.{key}": part for index, part in enumerate(parts)}
        step = torch.tensor(float(self._taken[number]))
        found |= {f"adam.{index}.step": step.clone() for index in range(len(self._weights.leaves))}
        found = {name: one.contiguous() for name, one in found.items()}
        if self.device.type == "cuda":
            found = {name: one.to(self.device) for name, one in found.items()}
            torch.cuda.current_stream().synchronize()  # others read the copies on streams of their own
        return found

    def epoch(self, number: int, seed: int) -> Tensor:
        """Trains all members for one epoch; returns their mean losses `(members,)`, on the device."""
        self._skeleton.train()
        if self._record and self._training is None:
            self._training = self._recorded(self._step, self._undo())
        torch.manual_seed(seed * 100_003 + number)
        used = self._steps * self._batch
        orders = [torch.randperm(len(rows), device=self.device)[:used] for rows in self._train]
        places = torch.stack([rows[order] for rows, order in zip(self._train, orders, strict=True)])
        of_steps = places.view(len(orders), self._steps, self._batch).transpose(0, 1)
        self._places.view(of_steps.shape).copy_(of_steps)
        self._rates.copy_(self._factors(number))
        self._number.zero_()
        self._total.zero_()
        for _ in range(self._steps):
            self._training.replay() if self._training is not None else self._step()
        self._taken = [taken + self._steps for taken in self._taken]
        return self._total / self._steps

    def _factors(self, epoch: int) -> Tensor:
        """The factors of each step and member: of its weights, of its step, and of the squared gradients."""
        scale = math.sqrt(max(1.0, self._batch / self._schedule.batch))
        found = torch.empty(self._steps, 3, len(self._members), 1)
        for i, (member, taken) in enumerate(zip(self._members, self._taken, strict=True)):
            rates = torch.tensor(member.schedule.rates(epoch, self._steps, scale), dtype=torch.float64)
            steps = taken + 1 + torch.arange(self._steps, dtype=torch.float64)
            found[:, 0, i, 0] = 1 - rates * member.schedule.weight_decay
            found[:, 1, i, 0] = -rates / (1 - BETAS[0] ** steps)
            found[:, 2, i, 0] = (1 - BETAS[1] ** steps) ** -0.5
        return found

    def validated(self) -> Tensor:
        """Returns the mean validation loss of each member `(members,)`, on the device."""
        self._skeleton.eval()
        if self._record and self._judging is None:
            self._judging = self._recorded(self._judge, lambda: None)
        self._judging.replay() if self._judging is not None else self._judge()
        return self._found.clone()

    def _step(self) -> None:
        inputs, targets = self._data.take(self._places.index_select(0, self._number)[0], self.device)
        losses = self._losses(augmented(self._members, inputs), targets, training=True)
        self._weights.backward(losses)
        self._update(self._rates.index_select(0, self._number)[0])
        self._total.add_(losses.detach())
        self._number.add_(1)

    def _losses(self, inputs: Batch, targets: Batch, *, training: bool) -> Tensor:
        """Returns the loss of each member `(members,)`."""
        with autocast(self.device):
            answers = self._forward(self._weights.leaves, inputs["x"]).float()
        if isinstance(self._objective, ClassObjective):
            lost = self._objective.each(answers.flatten(0, 1), targets["y"], training=training)
            return lost.view(len(answers), -1).mean(1)
        loss = partial(_loss, self._objective, training)
        by_member = {name: one.view(len(answers), -1, *one.shape[1:]) for name, one in targets.items()}
        found: Tensor = torch.func.vmap(loss)(answers, by_member)
        return found.float()

    @torch.no_grad()
    def _update(self, factors: Tensor) -> None:
        """Takes a step of AdamW for each member at its own rate, its gradients clipped together."""
        rows, gradients = self._weights.rows, self._weights.gradient_rows
        if self.device.type == "cuda" and (adam_step := adam_kernel()) is not None:
            settings = (CLIP, BETAS, EPSILON)
            adam_step(rows, (self._mean, self._square), gradients, factors, self._weights.copies, settings)
            return
        left, far, squares = factors.unbind(0)
        norms = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
        gradients.mul_((CLIP / (norms + 1e-6)).clamp(max=1.0))
        self._mean.lerp_(gradients, 1 - BETAS[0])
        self._square.mul_(BETAS[1]).addcmul_(gradients, gradients, value=1 - BETAS[1])
        divisor = self._square.sqrt().mul_(squares).add_(EPSILON)
        rows.mul_(left).addcdiv_(self._mean * far, divisor)
        self._weights.follow()

    @torch.no_grad()
    def _judge(self) -> None:
        self._found.zero_()
        for rows in torch.split(self._validate, AT_ONCE, dim=1):
            inputs, targets = self._data.take(rows.flatten(), self.device)
            self._found.add_(self._losses(inputs, targets, training=False) * rows.shape[1])
        self._found.div_(max(1, self._validate.shape[1]))

    def _undo(self) -> Callable[[], None]:
        kept = [self._weights.rows, self._mean, self._square, *self._buffers.values()]
        before = [one.clone() for one in kept]

        def undo() -> None:
            torch._foreach_copy_(kept, before)
            self._weights.follow()

        return undo

    def _recorded(self, work: Callable[[], None], undo: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
        """Returns the work as a graph; None, from now on for all of it, where it cannot be recorded."""
        beside = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(self.device))
        graph: torch.cuda.CUDAGraph | None = torch.cuda.CUDAGraph()
        try:
            with searching(searching_pays(self._schedule.epochs * self._steps)):
                with torch.cuda.stream(beside):
                    work()
                torch.cuda.current_stream(self.device).wait_stream(beside)
                self._number.zero_()
                assert graph is not None
                with torch.cuda.graph(graph):
                    work()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.info("networks train together step by step, since they cannot be recorded: %s", error)
            torch.cuda.synchronize()
            graph, self._record = None, False
        undo()
        return graph


def _loss(objective: Objective, training: bool, answer: Tensor, targets: Batch) -> Tensor:
    return objective.loss(_Answered(answer), {}, targets, training=training)

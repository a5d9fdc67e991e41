"""A few networks side by side: the step of each is a branch of one recorded graph, and the GPU runs branches at once.

Against stacked weights the convolutions are those of a single network, in mixed precision, and any objective will do;
against one after another a GPU that one small network leaves idle is filled.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from easel.match.checkpoint import Learners, TrainingState, put_back_in_place, restored, snapshot
from easel.match.compiling import searching_pays
from easel.match.device_data import Data
from easel.match.loop import batch_for
from easel.match.packed_member import PackedMember
from easel.match.train_steps import (
    GRAPH_STEPS,
    EagerSteps,
    Objective,
    autocast,
    own_optimiser,
    searching,
)

log = logging.getLogger("easel.match")
AT_ONCE = 2048
"""Validated examples of each member that go through its network together."""


class BranchedPack:
    """Networks with an optimiser each; one recorded step and one recorded validation for all of them."""

    def __init__(self, members: Sequence[PackedMember], data: Data, objective: Objective) -> None:
        self._members, self._data, self._objective = members, data, objective
        self.device = data.device
        self._schedule = members[0].schedule
        networks = [member.network for member in members]
        optimisers = [
            own_optimiser(one.network, one.schedule.lr, one.schedule.weight_decay, self.device)
            for one in members
        ]
        self.learners: list[Learners] = [
            {"": (network, optimiser)} for network, optimiser in zip(networks, optimisers, strict=True)
        ]
        self._best = [_weights(network) for network in networks]
        self._eager = [
            EagerSteps(one.network, optimiser, data, objective, one.augment)
            for one, optimiser in zip(members, optimisers, strict=True)
        ]
        self._rates_now = [optimiser.param_groups[0] for optimiser in optimisers]
        shortest = min(len(member.train) for member in members)
        self._batch = batch_for(self._schedule.batch, shortest, self.device, self._schedule.epochs)
        self._steps = max(1, shortest // self._batch)
        self._train = [member.train.to(self.device) for member in members]
        # Folds differ by one example: the last one of a longer fold is left out while losses are compared.
        judged = min(len(member.validate) for member in members)
        self._validate = [member.validate[:judged].to(self.device) for member in members]
        count = len(members)
        self._places = torch.zeros((self._steps, count, self._batch), dtype=torch.long, device=self.device)
        self._rates = torch.zeros((self._steps, count), device=self.device)
        self._number = torch.zeros(1, dtype=torch.long, device=self.device)
        self._total = torch.zeros(count, device=self.device)
        self._found = torch.zeros(count, device=self.device)
        on_gpu = self.device.type == "cuda"
        self._streams = [torch.cuda.Stream(self.device) for _ in members] if on_gpu else []  # type: ignore[no-untyped-call]
        self._record = on_gpu and self._schedule.epochs * self._steps >= GRAPH_STEPS
        self._training: torch.cuda.CUDAGraph | None = None
        self._judging: torch.cuda.CUDAGraph | None = None

    def restore(self) -> list[TrainingState]:
        """Returns how far each member is, after putting it back to its checkpoint where it has one."""
        states = []
        for number, (member, learners) in enumerate(zip(self._members, self.learners, strict=True)):
            found = None
            if member.checkpoint is not None and member.checkpoint.exists():
                found = restored(member.checkpoint, learners)
            if found is not None:
                self._best[number] = {name: one.to(self.device) for name, one in found[1].items()}
            states.append(TrainingState() if found is None else found[0])
        return states

    def keep(self, better: Sequence[int]) -> None:
        """Remembers the weights that these members have now."""
        for number in better:
            self._best[number] = _weights(self._members[number].network)

    def best(self, number: int) -> dict[str, Tensor]:
        """Returns what was last kept of a member."""
        return self._best[number]

    def snapshot(self, number: int) -> dict[str, Tensor]:
        """Returns all that a checkpoint of a member holds."""
        return snapshot(self.learners[number], self._best[number])

    def epoch(self, number: int, seed: int) -> Tensor:
        """Trains all members for one epoch; returns their mean losses `(members,)`, on the device."""
        for member in self._members:
            member.network.train()
        if self._record and self._training is None:
            self._training = self._recorded(self._step, self._undo())
        torch.manual_seed(seed * 100_003 + number)
        scale = math.sqrt(max(1.0, self._batch / self._schedule.batch))
        used = self._steps * self._batch
        for i, (member, rows) in enumerate(zip(self._members, self._train, strict=True)):
            order = torch.randperm(len(rows), device=self.device)[:used]
            self._places[:, i].copy_(rows[order].view(self._steps, self._batch))
            self._rates[:, i].copy_(torch.tensor(member.schedule.rates(number, self._steps, scale)))
        self._number.zero_()
        self._total.zero_()
        for _ in range(self._steps):
            self._training.replay() if self._training is not None else self._step()
        return self._total / self._steps

    def validated(self) -> Tensor:
        """Returns the mean validation loss of each member `(members,)`, on the device."""
        for member in self._members:
            member.network.eval()
        if self._record and self._judging is None:
            self._judging = self._recorded(self._judge, lambda: None)
        self._judging.replay() if self._judging is not None else self._judge()
        return self._found.clone()

    def _step(self) -> None:
        places = self._places.index_select(0, self._number)[0]
        rates = self._rates.index_select(0, self._number)[0]

        def one(i: int) -> None:
            group = self._rates_now[i]
            group["lr"].copy_(rates[i]) if self._streams else group.update(lr=float(rates[i]))
            self._total[i].add_(self._eager[i].step(*self._data.take(places[i], self.device)))

        self._side_by_side(one)
        self._number.add_(1)

    @torch.no_grad()
    def _judge(self) -> None:
        def one(i: int) -> None:
            rows, network = self._validate[i], self._members[i].network
            total = torch.zeros((), device=self.device)
            for part in torch.split(rows, AT_ONCE):
                inputs, targets = self._data.take(part, self.device)
                with autocast(self.device):
                    lost = self._objective.loss(network, inputs, targets, training=False)
                total += lost.float() * len(part)
            self._found[i].copy_(total / max(1, len(rows)))

        self._side_by_side(one)

    def _side_by_side(self, one: Callable[[int], None]) -> None:
        """Does it for each member, on a stream of its own where there are any."""
        if not self._streams:
            for i in range(len(self._members)):
                one(i)
            return
        here = torch.cuda.current_stream(self.device)
        for i, stream in enumerate(self._streams):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                one(i)
        for stream in self._streams:
            here.wait_stream(stream)

    def _undo(self) -> Callable[[], None]:
        before = [snapshot(learners, {}) for learners in self.learners]

        def undo() -> None:
            for learners, earlier in zip(self.learners, before, strict=True):
                put_back_in_place(earlier, learners)

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
            log.info("networks train side by side step by step, since they cannot be recorded: %s", error)
            torch.cuda.synchronize()
            graph, self._record = None, False
        undo()
        return graph


def _weights(network: nn.Module) -> dict[str, Tensor]:
    state: Mapping[str, Tensor] = network.state_dict()
    return {name: tensor.detach().clone() for name, tensor in state.items()}

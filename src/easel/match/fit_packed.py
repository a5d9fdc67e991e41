"""Networks trained together on a GPU: those of all rounds of a trial, at all its rates, and those of several trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch

from easel.match.augment import augmentation
from easel.match.checkpoint import state_in
from easel.match.fitting import Bag, Fitting, RateTry, answers_of, deadline, schedule_of
from easel.match.kinds import CAN_GO_ON, GAVE_WAY, OUT_OF_TIME
from easel.match.loop import Diverged, TrainingRun
from easel.match.network_body import finish
from easel.match.networks import build_network
from easel.match.packed import LEFT, PackedMember, fit_together
from easel.match.packing import MOST_TOGETHER, PACKED_EXAMPLES

PACKED_DEVICES = ("cuda",)
Rates: TypeAlias = "list[Bag | Diverged]"
"""What each rate of a trial came to."""


class Left(RuntimeError):
    """The trial was killed, and those that it was trained with went on."""


@dataclass(frozen=True)
class Lot:
    """A trial's part of what is trained together: the networks of all its rounds at its rates."""

    fitting: Fitting
    tries: tuple[RateTry, ...]

    @property
    def members(self) -> int:
        return len(self.fitting.plan) * len(self.tries)

    @property
    def plain(self) -> bool:
        """Whether its networks learn step by step, from pictures that may be augmented."""
        return self.fitting.family.solve is None and not self.fitting.vectors and self.fitting.still

    @cached_property
    def likeness(self) -> Any:
        """What is equal for networks of the same layers that learn from the same tensors, as long, to the same end."""
        one = self.fitting
        schedule = replace(schedule_of(one, 0, 1.0), lr=1.0)
        aim = one.objective(one.candidate, one.wiring, 1.0)
        network = build_network(one.candidate, one.wiring, 0)
        shapes = {name: tensor.shape for name, tensor in network.state_dict().items()}
        return (
            id(one.data.inputs),
            id(one.data.targets),
            schedule,
            type(aim),
            vars(aim),
            shapes,
            repr(network),
        )


def packable(lots: Sequence[Lot]) -> bool:
    """Whether these are trained together: several small networks, alike and as far, whose examples are on a GPU."""
    data = lots[0].fitting.data
    few = 1 < sum(lot.members for lot in lots) <= MOST_TOGETHER and len(data) <= PACKED_EXAMPLES
    if not (few and data.device.type in PACKED_DEVICES and all(lot.plain for lot in lots)):
        return False
    return all(lot.likeness == lots[0].likeness for lot in lots[1:]) and len(_begun(lots)) <= 1


def _begun(lots: Sequence[Lot]) -> set[int]:
    """Returns after which epochs networks go on that are not over."""
    found = set()
    for lot in lots:
        for one in lot.tries:
            for number in range(len(lot.fitting.plan)):
                state = state_in(one.checkpoint(lot.fitting.conditions, number))
                if not state.waited(schedule_of(lot.fitting, number, one.rate).patience):
                    found.add(state.epoch)
    return found


def fit_packed(lots: Sequence[Lot], left: Callable[[int], bool] = lambda number: False) -> list[Rates | Left]:
    """Returns what each of the rates of each trial came to, all trained together; `left` tells, after every epoch, of a
    trial by its number whether it was killed."""
    first = lots[0].fitting
    members: list[PackedMember] = []
    lot_of: list[int] = []
    for number, lot in enumerate(lots):
        for one in lot.tries:
            members += _members(lot.fitting, one)
        lot_of += [number] * lot.members
    asked = [_asked(lot.fitting, lambda number=number: left(number)) for number, lot in enumerate(lots)]  # type: ignore[misc]

    def progress(share: float) -> None:
        for lot in lots:
            lot.fitting.conditions.progress(share)

    runs = fit_together(
        members,
        first.data,
        first.objective(first.candidate, first.wiring, lots[0].tries[0].rate),
        seed=first.conditions.seed,
        stop=lambda member: asked[lot_of[member]](),
        progress=progress,
    )
    found: list[Rates | Left] = []
    start = 0
    for lot in lots:
        each = len(lot.fitting.plan)
        mine = runs[start : start + lot.members]
        if any(isinstance(run, TrainingRun) and run.stopped == LEFT for run in mine):
            found.append(Left(LEFT))
        else:
            found.append(
                [
                    _bag(lot.fitting, members[at : at + each], runs[at : at + each])
                    for at in range(start, start + lot.members, each)
                ]
            )
        start += lot.members
    return found


def _members(fitting: Fitting, one: RateTry) -> list[PackedMember]:
    """Returns the networks of all rounds at a rate."""
    conditions, candidate = fitting.conditions, fitting.candidate
    augment = augmentation(candidate.text("augment", "none"))
    found = []
    for number in range(len(fitting.plan)):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, fitting.wiring, conditions.seed)
        learn, stop = (torch.from_numpy(rows).long() for rows in fitting.parts(number))
        schedule = schedule_of(fitting, number, one.rate)
        checkpoint = one.checkpoint(conditions, number)
        found.append(PackedMember(network, learn, stop, schedule, checkpoint, augment))
    return found


def _asked(fitting: Fitting, left: Callable[[], bool]) -> Callable[[], str]:
    """Returns what says why the networks of a trial should stop; nothing where they may go on."""
    conditions = fitting.conditions
    out_of_time = deadline(conditions, conditions.clock(), 1.0)

    def stop() -> str:
        if left():
            return LEFT
        if conditions.give_way():
            return GAVE_WAY
        return OUT_OF_TIME if out_of_time() else ""

    return stop


def _bag(
    fitting: Fitting, members: Sequence[PackedMember], runs: Sequence[TrainingRun | Diverged]
) -> Bag | Diverged:
    done: list[TrainingRun] = []
    for run in runs:
        if isinstance(run, Diverged):
            return run
        done.append(run)
    answers = [
        answers_of(member.network, fitting.data.only(torch.from_numpy(one.validate).long()))
        for member, one in zip(members, fitting.plan, strict=True)
    ]
    return Bag(
        tuple(member.network.cpu() for member in members),
        np.concatenate([finish(raw, fitting.wiring.target) for raw in answers]),
        float(np.mean([run.best_loss for run in done])),
        next((run.stopped for run in done if run.stopped in CAN_GO_ON), "finished"),
        tuple(run.curve for run in done),
        sum(run.resumed for run in done),
        min(run.reached for run in done),
    )

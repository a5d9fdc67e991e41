"""A candidate's networks, one for each round of validation; where its learning rate is open, those of the best rate.

The paper tries every learning rate of a grid inside a trial and keeps the best (ease.ml §3.4); `lr = grid` does so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from easel.match.augment import augmentation
from easel.match.candidate import GRID, Candidate
from easel.match.checkpoint import epochs_in
from easel.match.device_data import Batch, Data
from easel.match.encode.images import PictureEncoder
from easel.match.encode.texts import TextEncoder
from easel.match.family import NetworkFamily
from easel.match.kinds import CAN_GO_ON, SLICE_ENDED
from easel.match.loop import Diverged, Schedule, TrainingRun, fit, predict, training_device
from easel.match.network_body import finish
from easel.match.networks import Wiring, build_network
from easel.match.packed import MOST_BRANCHES, PackedMember, fit_together
from easel.match.registry import network_family
from easel.match.split import Round
from easel.match.targets import Classes, Values
from easel.match.train import Conditions
from easel.match.train_steps import Objective
from easel.match.zoo.structured import TextNetwork

log = logging.getLogger("easel.match")
RATES = (0.1, 0.01, 0.001, 0.0001)
"""The grid of the paper's own runs with Adam."""
PACKED_EXAMPLES = 20_000
"""Rounds of trials with more examples fill a GPU one by one."""
PACKED_DEVICES = ("cuda",)
Vectors: TypeAlias = Mapping[str, Sequence[float]]
"""Words and where they lie."""
PART, FEWEST_TO_PART = 8, 40


@dataclass(frozen=True)
class Fitting:
    """All that the networks of a trial are made from."""

    candidate: Candidate
    wiring: Wiring
    objective: Callable[[Candidate, Wiring, float], Objective]
    data: Data
    plan: tuple[Round, ...]
    conditions: Conditions
    vectors: Vectors
    labels: NDArray[Any] | None = None
    """The class of every example, where there are classes."""


@dataclass(frozen=True)
class Bag:
    """`predicted` are the answers for the validated examples, in the order of the rounds; `loss` is the mean of the
    rounds' best validation losses.
    """

    networks: tuple[nn.Module, ...]
    predicted: NDArray[Any]
    loss: float
    stopped: str
    curves: tuple[tuple[tuple[float, float], ...], ...]
    resumed: int
    reached: float = 1.0
    halved: int = 0


@dataclass(frozen=True)
class _Try:
    """One learning rate: the `number`-th `of` so many."""

    rate: float
    number: int = 0
    of: int = 1

    def checkpoint(self, round_number: int) -> str:
        mine = f"rate-{self.number}-" if self.of > 1 else ""
        return f"{mine}round-{round_number}.safetensors"

    def share(self, of_rounds: float) -> float:
        """Returns the share of the whole trial that is done when this share of its own rounds is."""
        return (self.number + of_rounds) / self.of


def best_bag(fitting: Fitting) -> Bag:
    """Returns the bag of the candidate's learning rate, or of the best of the grid; a rate that diverges is out."""
    times = seeds_of(fitting.candidate)
    if times > 1:
        bag = _best_rate(replace(fitting, plan=tuple(one for one in fitting.plan for _ in range(times))))
        return replace(
            bag, predicted=mean_of(bag.predicted, [len(one.validate) for one in fitting.plan], times)
        )
    return _best_rate(fitting)


def seeds_of(candidate: Candidate) -> int:
    """Returns how many networks, which differ by their seeds and by what they learn from, answer together."""
    return max(1, int(candidate.number("bag", 1)))


def mean_of(predicted: NDArray[Any], sizes: Sequence[int], times: int) -> NDArray[Any]:
    """Returns the mean of the `times` answers that lie one after another for each of the parts of these sizes."""
    found, start = [], 0
    for size in sizes:
        end = start + size * times
        found.append(predicted[start:end].reshape(times, size, *predicted.shape[1:]).mean(axis=0))
        start = end
    return np.concatenate(found)


def _best_rate(fitting: Fitting) -> Bag:
    if fitting.candidate.text("lr", "") != GRID:
        return _fit_all(fitting, _Try(fitting.candidate.number("lr", 1e-3)))
    best: Bag | None = None
    failed: Diverged | None = None
    resumed, reached, halved = 0, 1.0, 0
    for number, rate in enumerate(RATES):
        try:
            bag = _fit_all(fitting, _Try(rate, number, len(RATES)))
        except Diverged as error:
            failed = error
            continue
        resumed, reached = resumed + bag.resumed, min(reached, bag.reached)
        halved = max(halved, bag.halved)
        if best is None or bag.loss < best.loss:
            best = bag
    if best is None:
        raise failed or Diverged("no learning rate of the grid led anywhere")
    return replace(best, resumed=resumed, reached=reached, halved=halved)


def _fit_all(fitting: Fitting, attempt: _Try) -> Bag:
    """Returns the networks of all rounds at one learning rate: trained as one program where a GPU has room for it."""
    data = fitting.data.resident(training_device())
    if _packable(fitting, attempt, data):
        try:
            return _fit_packed(fitting, attempt, data)
        except torch.cuda.OutOfMemoryError:
            # One at a time they need a fraction of it, and halve their batches where that is too much.
            log.info("not enough memory to train %d networks together: they train in turn", len(fitting.plan))
            torch.cuda.empty_cache()
    return _fit_in_turn(fitting, attempt)


def _packable(fitting: Fitting, attempt: _Try, data: Data) -> bool:
    """Whether the rounds are trained together: several small networks, equally far, whose examples are on a GPU."""
    few = 1 < len(fitting.plan) <= MOST_BRANCHES and len(data) <= PACKED_EXAMPLES
    family = network_family(fitting.candidate)
    plain = family.solve is None and not fitting.vectors and _still(fitting.wiring)
    if not (few and plain and data.device.type in PACKED_DEVICES):
        return False
    rounds = range(len(fitting.plan))
    return len({epochs_in(_checkpoint(fitting.conditions, attempt, number)) for number in rounds}) == 1


def _checkpoint(conditions: Conditions, attempt: _Try, number: int) -> Path | None:
    return None if conditions.checkpoints is None else conditions.checkpoints / attempt.checkpoint(number)


def _fit_packed(fitting: Fitting, attempt: _Try, data: Data) -> Bag:
    candidate, wiring, conditions = fitting.candidate, fitting.wiring, fitting.conditions
    family = network_family(candidate)
    members = []
    for number, one in enumerate(fitting.plan):
        torch.manual_seed(conditions.seed + 1000 * number)
        schedule = _schedule(conditions, family, len(one.train), attempt.rate)
        network = build_network(candidate, wiring, conditions.seed)
        parts = _parts(fitting, one, number)
        learn, stop = (torch.from_numpy(rows).long() for rows in parts)
        members.append(PackedMember(network, learn, stop, schedule, _checkpoint(conditions, attempt, number)))
    runs = fit_together(
        members,
        data,
        fitting.objective(candidate, wiring, attempt.rate),
        seed=conditions.seed,
        out_of_time=_deadline(conditions, conditions.clock(), 1.0 / attempt.of),
        augment=augmentation(candidate.text("augment", "none")),
        progress=lambda share: conditions.progress(attempt.share(share)),
        give_way=conditions.give_way,
    )
    done: list[TrainingRun] = []
    for run in runs:
        if isinstance(run, Diverged):
            raise run
        done.append(run)
    answers = [
        _answers(member.network, data.only(torch.from_numpy(one.validate).long()))
        for member, one in zip(members, fitting.plan, strict=True)
    ]
    cut = next((run.stopped for run in done if run.stopped in CAN_GO_ON), "finished")
    return Bag(
        tuple(member.network.cpu() for member in members),
        np.concatenate([finish(raw, wiring.target) for raw in answers]),
        float(np.mean([run.best_loss for run in done])),
        cut,
        tuple(run.curve for run in done),
        sum(run.resumed for run in done),
        min(run.reached for run in done),
    )


def _fit_in_turn(fitting: Fitting, attempt: _Try) -> Bag:
    candidate, wiring, conditions = fitting.candidate, fitting.wiring, fitting.conditions
    plan, family = fitting.plan, network_family(fitting.candidate)
    began = conditions.clock()
    networks: list[nn.Module] = []
    predicted: list[NDArray[Any]] = []
    curves: list[tuple[tuple[float, float], ...]] = []
    losses: list[float] = []
    resumed, stopped, reached, halved = 0, "finished", 1.0, 0
    if family.solve is not None and conditions.until is not None and conditions.until < 1.0:
        # the examples of the plan are a share already
        stopped, reached = SLICE_ENDED, conditions.until
    augment = augmentation(candidate.text("augment", "none")) if _still(wiring) else _as_is
    data = fitting.data if family.solve is not None else fitting.data.resident(training_device())
    for number, one in enumerate(plan):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, wiring, conditions.seed)
        train, validate = (data.only(torch.from_numpy(rows)) for rows in (one.train, one.validate))
        parts = _parts(fitting, one, number)
        learn, stop = (data.only(torch.from_numpy(rows)) for rows in parts)
        if family.solve is not None:
            family.solve(network, candidate, train, wiring.target, conditions.seed)
        else:
            if isinstance(network, TextNetwork) and isinstance(wiring.source, TextEncoder):
                _give_vectors(network, wiring.source, fitting.vectors)

            def report(share: float, _: float, number: int = number) -> None:
                conditions.progress(attempt.share((number + share) / len(plan)))

            found = fit(
                network,
                learn,
                stop,
                fitting.objective(candidate, wiring, attempt.rate),
                _schedule(conditions, family, len(one.train), attempt.rate),
                seed=conditions.seed + number,
                out_of_time=_deadline(conditions, began, (number + 1) / len(plan) / attempt.of),
                augment=augment,
                checkpoint=_checkpoint(conditions, attempt, number),
                progress=report,
                give_way=conditions.give_way,
            )
            curves.append(found.curve)
            losses.append(found.best_loss)
            resumed += found.resumed
            stopped = found.stopped if found.stopped in CAN_GO_ON else stopped
            reached = min(reached, found.reached)
            halved = max(halved, found.halved)
        predicted.append(finish(_answers(network, validate), wiring.target))
        networks.append(network.cpu())
        conditions.progress(attempt.share((number + 1) / len(plan)))
    loss = float(np.mean(losses)) if losses else 0.0
    return Bag(
        tuple(networks), np.concatenate(predicted), loss, stopped, tuple(curves), resumed, reached, halved
    )


def _schedule(conditions: Conditions, family: NetworkFamily, examples: int, rate: float) -> Schedule:
    epochs = conditions.epochs or family.epochs(examples)
    # rounded up: a slice that stopped short of its rung would be asked for again and again
    until = None if conditions.until is None else max(1, math.ceil(conditions.until * epochs - 1e-6))
    return Schedule(
        epochs, rate, patience=15 if family.chooses else epochs, chooses=family.chooses, until=until
    )


def _parts(fitting: Fitting, one: Round, number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """What a round learns from, and what its curve is of. A recipe that keeps its last epoch chooses nothing by the
    latter and learns from all of it, unless several rates are compared by it."""
    learn, stop = inner_split(one.train, fitting.labels, number % seeds_of(fitting.candidate))
    chooses = network_family(fitting.candidate).chooses or fitting.candidate.text("lr", "") == GRID
    return (learn if chooses else one.train), stop


def inner_split(
    rows: NDArray[np.intp], labels: NDArray[Any] | None, turn: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """What a round learns from, and every eighth example of each class, by which it chooses its epoch: never the fold
    that scores it. Where a round has few examples they all do both. With each `turn` it is another eighth.
    """
    if len(rows) < FEWEST_TO_PART:
        return rows, rows
    order = rows if labels is None else rows[np.argsort(labels[rows], kind="stable")]
    held = np.zeros(len(order), dtype=bool)
    held[(PART // 2 + turn) % PART :: PART] = True
    return np.sort(order[~held]), np.sort(order[held])


def _answers(network: nn.Module, data: Data) -> torch.Tensor:
    parts = torch.split(torch.arange(len(data)), 4096)
    return torch.cat([predict(network, data.take(part, data.device)[0]) for part in parts])


def _still(wiring: Wiring) -> bool:
    """A picture whose answer does not move with it: only then may it be turned and shifted."""
    return isinstance(wiring.source, PictureEncoder) and isinstance(wiring.target, Classes | Values)


def _as_is(batch: Batch) -> Batch:
    return batch


def _deadline(conditions: Conditions, began: float, share: float) -> Callable[[], bool]:
    ends = began + conditions.budget_s * share
    return lambda: conditions.clock() > ends


@torch.no_grad()
def _give_vectors(network: TextNetwork, source: TextEncoder, vectors: Vectors) -> None:
    """Given words stay where they were given; others get a place of their own, at random."""
    if not vectors:
        return
    table = network.embed.weight
    for number, word in enumerate(source.words, start=2):
        if word in vectors:
            table[number] = torch.tensor(vectors[word])
    table.requires_grad_(False)


def solve_on_all(candidate: Candidate, wiring: Wiring, data: Data, seed: int) -> nn.Module:
    """A network that is solved at once, on everything."""
    network = build_network(candidate, wiring, seed)
    solve = network_family(candidate).solve
    assert solve is not None
    solve(network, candidate, data, wiring.target, seed)
    return network

"""A candidate's networks, one for each round of validation; where its learning rate is open, those of the best rate.

The paper tries every learning rate of a grid inside a trial and keeps the best (ease.ml §3.4); `lr = grid` does so. A
GPU with room for it trains all of them together.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from easel.match.augment import augmentation
from easel.match.candidate import GRID, Candidate
from easel.match.device import own_share, training_device
from easel.match.device_data import Batch, Data
from easel.match.encode.texts import TextEncoder
from easel.match.fit_packed import fit_packed, packable
from easel.match.fitting import Bag, Fitting, RateTry, Vectors, answers_of, deadline, schedule_of, seeds_of
from easel.match.kinds import CAN_GO_ON, SLICE_ENDED
from easel.match.loop import Diverged, fit
from easel.match.network_body import finish
from easel.match.networks import Wiring, build_network
from easel.match.registry import network_family
from easel.match.zoo.structured import TextNetwork

log = logging.getLogger("easel.match")
RATES = (0.1, 0.01, 0.001, 0.0001)
"""The grid of the paper's own runs with Adam."""


def best_bag(fitting: Fitting) -> Bag:
    """Returns the bag of the candidate's learning rate, or of the best of the grid; a rate that diverges is out."""
    times = seeds_of(fitting.candidate)
    sizes = [len(one.validate) for one in fitting.plan]
    if times > 1:
        fitting = replace(fitting, plan=tuple(one for one in fitting.plan for _ in range(times)))
    bag = _best_rate(fitting)
    return bag if times == 1 else replace(bag, predicted=mean_of(bag.predicted, sizes, times))


def mean_of(predicted: NDArray[Any], sizes: Sequence[int], times: int) -> NDArray[Any]:
    """Returns the mean of the `times` answers that lie one after another for each of the parts of these sizes."""
    found, start = [], 0
    for size in sizes:
        end = start + size * times
        found.append(predicted[start:end].reshape(times, size, *predicted.shape[1:]).mean(axis=0))
        start = end
    return np.concatenate(found)


def _best_rate(fitting: Fitting) -> Bag:
    if fitting.candidate.text("lr", "") == GRID:
        tries = [RateTry(rate, number, len(RATES)) for number, rate in enumerate(RATES)]
    else:
        tries = [RateTry(fitting.candidate.number("lr", 1e-3))]
    found = _fit_all(fitting, tries)
    bags = [one for one in found if isinstance(one, Bag)]
    if not bags:
        failed = [one for one in found if isinstance(one, Diverged)]
        raise failed[-1] if failed else Diverged("no learning rate of the grid led anywhere")
    best = min(bags, key=lambda bag: bag.loss)
    return replace(
        best,
        resumed=sum(bag.resumed for bag in bags),
        reached=min(bag.reached for bag in bags),
        halved=max(bag.halved for bag in bags),
    )


def _fit_all(fitting: Fitting, tries: Sequence[RateTry]) -> list[Bag | Diverged]:
    """Returns what all rates came to, one program for all where a GPU has room for it; its examples are there once."""
    squeezed = 0
    if fitting.family.solve is None:
        device = training_device()
        fitting = replace(fitting, data=fitting.data.resident(device))
        squeezed = int(fitting.data.device.type != device.type and own_share() < 1.0)
    if packable(fitting, tries):
        try:
            return list(fit_packed(fitting, tries))
        except torch.cuda.OutOfMemoryError:
            # One at a time they need a fraction of it, and halve their batches where that is too much.
            log.info("not enough memory to train all networks together: they train in turn")
            squeezed = 1
    if squeezed:
        torch.cuda.empty_cache()  # not before the exception, which holds what was allocated, is gone
    found: list[Bag | Diverged] = []
    for one in tries:
        try:
            bag = _fit_in_turn(fitting, one)
            found.append(replace(bag, halved=max(squeezed, bag.halved)))
        except Diverged as error:
            found.append(error)
    return found


def _fit_in_turn(fitting: Fitting, attempt: RateTry) -> Bag:
    candidate, wiring, conditions = fitting.candidate, fitting.wiring, fitting.conditions
    plan, family, data = fitting.plan, fitting.family, fitting.data
    began = conditions.clock()
    networks: list[nn.Module] = []
    predicted: list[NDArray[Any]] = []
    curves: list[tuple[tuple[float, float], ...]] = []
    losses: list[float] = []
    resumed, stopped, reached, halved = 0, "finished", 1.0, 0
    if family.solve is not None and conditions.until is not None and conditions.until < 1.0:
        # the examples of the plan are a share already
        stopped, reached = SLICE_ENDED, conditions.until
    augment = augmentation(candidate.text("augment", "none")) if fitting.still else _as_is
    for number, one in enumerate(plan):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, wiring, conditions.seed)
        train, validate = (data.only(torch.from_numpy(rows)) for rows in (one.train, one.validate))
        learn, stop = (data.only(torch.from_numpy(rows)) for rows in fitting.parts(number))
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
                schedule_of(fitting, number, attempt.rate),
                seed=conditions.seed + number,
                out_of_time=deadline(conditions, began, (number + 1) / len(plan) / attempt.of),
                augment=augment,
                checkpoint=attempt.checkpoint(conditions, number),
                progress=report,
                give_way=conditions.give_way,
            )
            curves.append(found.curve)
            losses.append(found.best_loss)
            resumed += found.resumed
            stopped = found.stopped if found.stopped in CAN_GO_ON else stopped
            reached = min(reached, found.reached)
            halved = max(halved, found.halved)
        predicted.append(finish(answers_of(network, validate), wiring.target))
        networks.append(network.cpu())
        conditions.progress(attempt.share((number + 1) / len(plan)))
    loss = float(np.mean(losses)) if losses else 0.0
    return Bag(
        tuple(networks), np.concatenate(predicted), loss, stopped, tuple(curves), resumed, reached, halved
    )


def _as_is(batch: Batch) -> Batch:
    return batch


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

"""A candidate's networks, one for each round of validation; where its learning rate is open, those of the best rate.

The paper tries every learning rate of a grid inside a trial and keeps the best (ease.ml §3.4); `lr = grid` does so. A
GPU with room for it trains all of them together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
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
from easel.match.fit_packed import Left, Lot, Rates, fit_packed, packable
from easel.match.fitting import Bag, Fitting, RateTry, Vectors, answers_of, deadline, schedule_of, seeds_of
from easel.match.kinds import CAN_GO_ON, SLICE_ENDED
from easel.match.loop import Diverged, fit
from easel.match.network_body import finish
from easel.match.networks import Wiring, build_network
from easel.match.packed import LEFT
from easel.match.packing import RATES
from easel.match.registry import network_family
from easel.match.zoo.kernel_use import network_name, use_kept_kernels
from easel.match.zoo.structured import TextNetwork

log = logging.getLogger("easel.match")


def best_bag(fitting: Fitting) -> Bag:
    """Returns the bag of the candidate's learning rate, or of the best of the grid; a rate that diverges is out."""
    _choose_kernels(fitting)
    (lot,), squeezed = _on_device([_lot_of(fitting)])
    return _best(fitting, _fit_all(lot, squeezed))


def best_bags(
    fittings: Sequence[Fitting], left: Callable[[int], bool] = lambda number: False
) -> Iterator[tuple[int, Bag | Exception]]:
    """Yields, by their numbers, what several trials came to: trained together as far as they are alike, the others in
    turn. One that fails does not touch the others; `left` tells which was killed.
    """
    if fittings:
        _choose_kernels(fittings[0])  # trials that start together differ in rate and augmentation only
    lots, squeezed = _on_device([_lot_of(fitting) for fitting in fittings])
    rest = list(range(len(lots)))
    while rest:
        together = rest[:1]
        for number in rest[1:]:
            together += [number] if packable([lots[one] for one in (*together, number)]) else []
        rest = [number for number in rest if number not in together]
        found = _fit_several([lots[one] for one in together], squeezed, lambda k, of=together: left(of[k]))  # type: ignore[misc]
        for number, rates in zip(together, found, strict=True):
            try:
                yield number, rates if isinstance(rates, Exception) else _best(fittings[number], rates)
            except Diverged as error:
                yield number, error


def _choose_kernels(fitting: Fitting) -> None:
    """Has this process use our GPU kernels where those of the trial's network are kept."""
    use_kept_kernels(network_name(fitting.candidate.family, fitting.candidate.number("width", 1.0)))


def _lot_of(fitting: Fitting) -> Lot:
    """Returns all that a trial trains: so many networks a round as its bag has, at all rates of its grid."""
    times = seeds_of(fitting.candidate)
    if times > 1:
        fitting = replace(fitting, plan=tuple(one for one in fitting.plan for _ in range(times)))
    if fitting.candidate.text("lr", "") == GRID:
        return Lot(fitting, tuple(RateTry(rate, number, len(RATES)) for number, rate in enumerate(RATES)))
    return Lot(fitting, (RateTry(fitting.candidate.number("lr", 1e-3)),))


def _on_device(lots: Sequence[Lot]) -> tuple[list[Lot], int]:
    """Returns the same with examples on the GPU, equal ones once, and whether its share was too small for them."""
    device, squeezed = training_device(), 0
    there: list[tuple[Data, Data]] = []
    found = []
    for lot in lots:
        data = lot.fitting.data
        known = next((moved for before, moved in there if before.equals(data)), None)
        if lot.fitting.family.solve is not None:
            known = data
        elif known is None:
            known = data.resident(device)
            squeezed |= int(known.device.type != device.type and own_share() < 1.0)
            there.append((data, known))
        found.append(replace(lot, fitting=replace(lot.fitting, data=known)))
    return found, squeezed


def _best(fitting: Fitting, rates: Rates) -> Bag:
    """Returns the bag of the best rate; that of several networks a round with the mean of their answers."""
    bags = [one for one in rates if isinstance(one, Bag)]
    if not bags:
        failed = [one for one in rates if isinstance(one, Diverged)]
        raise failed[-1] if failed else Diverged("no learning rate of the grid led anywhere")
    best = min(bags, key=lambda bag: bag.loss)
    times, sizes = seeds_of(fitting.candidate), [len(one.validate) for one in fitting.plan]
    return replace(
        best,
        predicted=best.predicted if times == 1 else mean_of(best.predicted, sizes, times),
        resumed=sum(bag.resumed for bag in bags),
        reached=min(bag.reached for bag in bags),
        halved=max(bag.halved for bag in bags),
    )


def mean_of(predicted: NDArray[Any], sizes: Sequence[int], times: int) -> NDArray[Any]:
    """Returns the mean of the `times` answers that lie one after another for each of the parts of these sizes."""
    found, start = [], 0
    for size in sizes:
        end = start + size * times
        found.append(predicted[start:end].reshape(times, size, *predicted.shape[1:]).mean(axis=0))
        start = end
    return np.concatenate(found)


def _fit_several(
    lots: Sequence[Lot], squeezed: int, left: Callable[[int], bool]
) -> Iterator[Rates | Exception]:
    """Yields what each of the trials came to: together, or in turn where that does not go."""
    if len(lots) > 1:
        try:
            yield from fit_packed(lots, left)
            return
        except torch.cuda.OutOfMemoryError:
            log.warning("not enough memory to train %d trials together: they train in turn", len(lots))
            squeezed = 1
        except Exception:  # of which of them it is will be seen when each trains alone
            log.exception("%d trials could not be trained together: they train in turn", len(lots))
        torch.cuda.empty_cache()
    for number, lot in enumerate(lots):
        if left(number):
            yield Left(LEFT)
            continue
        try:
            yield _fit_all(lot, squeezed)
        except Exception as error:  # noqa: BLE001  of one trial: the others go on
            yield error


def _fit_all(lot: Lot, squeezed: int) -> Rates:
    """Returns what all rates came to, one program for all where a GPU has room for it."""
    if packable([lot]):
        try:
            (found,) = fit_packed([lot])
            assert not isinstance(found, Left)
            return found
        except torch.cuda.OutOfMemoryError:
            # One at a time they need a fraction of it, and halve their batches where that is too much.
            log.info("not enough memory to train all networks together: they train in turn")
            squeezed = 1
        except Exception:
            log.exception("the networks of a trial could not be trained together: they train in turn")
        torch.cuda.empty_cache()  # not before the exception, which holds what was allocated, is gone
    rates: Rates = []
    for one in lot.tries:
        try:
            bag = _fit_in_turn(lot.fitting, one)
            rates.append(replace(bag, halved=max(squeezed, bag.halved)))
        except Diverged as error:
            rates.append(error)
    return rates


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

"""A candidate's networks, one for each round of validation; where its learning rate is open, those of the best rate.

The paper tries every learning rate of a grid inside a trial and keeps the best (ease.ml §3.4); `lr = grid` does so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from easel.match.augment import augmentation
from easel.match.candidate import GRID, Candidate
from easel.match.encode.images import PictureEncoder
from easel.match.encode.texts import TextEncoder
from easel.match.loop import Batch, Data, Diverged, Objective, Schedule, fit, predict
from easel.match.network_body import finish
from easel.match.networks import Wiring, build_network
from easel.match.propose import epochs_for
from easel.match.split import Round
from easel.match.targets import Classes, Values
from easel.match.train import Conditions
from easel.match.zoo.minirocket import MiniRocket
from easel.match.zoo.structured import TextNetwork

RATES = (0.1, 0.01, 0.001, 0.0001)
"""The grid of the paper's own runs with Adam."""
Vectors: TypeAlias = Mapping[str, Sequence[float]]
"""Words and where they lie."""
_CPU = torch.device("cpu")


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
        """Of the whole trial, when this share of its own rounds is done."""
        return (self.number + of_rounds) / self.of


def best_bag(fitting: Fitting) -> Bag:
    """Of the candidate's learning rate, or of the best one of the grid; a rate that diverges is out of the race."""
    if fitting.candidate.text("lr", "") != GRID:
        return _fit_all(fitting, _Try(fitting.candidate.number("lr", 1e-3)))
    best: Bag | None = None
    failed: Diverged | None = None
    resumed = 0
    for number, rate in enumerate(RATES):
        try:
            bag = _fit_all(fitting, _Try(rate, number, len(RATES)))
        except Diverged as error:
            failed = error
            continue
        resumed += bag.resumed
        if best is None or bag.loss < best.loss:
            best = bag
    if best is None:
        raise failed or Diverged("no learning rate of the grid led anywhere")
    return Bag(best.networks, best.predicted, best.loss, best.stopped, best.curves, resumed)


def _fit_all(fitting: Fitting, attempt: _Try) -> Bag:
    candidate, wiring, conditions = fitting.candidate, fitting.wiring, fitting.conditions
    plan = fitting.plan
    began = conditions.clock()
    networks: list[nn.Module] = []
    predicted: list[NDArray[Any]] = []
    curves: list[tuple[tuple[float, float], ...]] = []
    losses: list[float] = []
    resumed, stopped = 0, "finished"
    augment = augmentation(candidate.text("augment", "none")) if _still(wiring) else _as_is
    for number, one in enumerate(plan):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, wiring, conditions.seed)
        train, validate = (fitting.data.only(torch.from_numpy(rows)) for rows in (one.train, one.validate))
        if isinstance(network, MiniRocket):
            fit_rocket(network, candidate, train, wiring.target, conditions.seed)
        else:
            if isinstance(network, TextNetwork) and isinstance(wiring.source, TextEncoder):
                _give_vectors(network, wiring.source, fitting.vectors)

            def report(share: float, _: float, number: int = number) -> None:
                conditions.progress(attempt.share((number + share) / len(plan)))

            found = fit(
                network,
                train,
                validate,
                fitting.objective(candidate, wiring, attempt.rate),
                Schedule(conditions.epochs or epochs_for(candidate.family, len(one.train)), attempt.rate),
                seed=conditions.seed + number,
                out_of_time=_deadline(conditions, began, (number + 1) / len(plan) / attempt.of),
                augment=augment,
                checkpoint=None
                if conditions.checkpoints is None
                else conditions.checkpoints / attempt.checkpoint(number),
                progress=report,
            )
            curves.append(found.curve)
            losses.append(found.best_loss)
            resumed += found.resumed
            stopped = found.stopped if found.stopped == "out of time" else stopped
        networks.append(network.cpu())
        predicted.append(finish(_answers(network, validate), wiring.target))
        conditions.progress(attempt.share((number + 1) / len(plan)))
    loss = float(np.mean(losses)) if losses else 0.0
    return Bag(tuple(networks), np.concatenate(predicted), loss, stopped, tuple(curves), resumed)


def _answers(network: nn.Module, data: Data) -> torch.Tensor:
    parts = torch.split(torch.arange(len(data)), 512)
    return torch.cat([predict(network, data.take(part, _CPU)[0]) for part in parts])


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


def fit_rocket(network: MiniRocket, candidate: Candidate, train: Data, target: Any, seed: int) -> None:
    inputs, targets = train.take(torch.arange(len(train)), _CPU)
    x, mask = inputs["x"], inputs["mask"]
    network.fit_biases(x, mask, torch.Generator().manual_seed(seed))
    features = torch.cat([network.features(x[i : i + 256], mask[i : i + 256]) for i in range(0, len(x), 256)])
    y = targets["y"].numpy()
    goal = 2.0 * np.eye(len(target.names))[y] - 1.0 if isinstance(target, Classes) else y
    network.fit_linear(features, goal, candidate.number("alpha", 1.0))


def refit_rocket(
    candidate: Candidate, wiring: Wiring, data: Data, truth: Any, predicted: Any, seed: int
) -> MiniRocket:
    """On everything; for classes the margins are stretched until the validated probabilities are honest."""
    network = build_network(candidate, wiring, seed)
    assert isinstance(network, MiniRocket)
    fit_rocket(network, candidate, data, wiring.target, seed)
    if isinstance(wiring.target, Classes):
        margins = np.log(np.clip(predicted, 1e-12, 1.0))
        best = min((1.0, 2.0, 3.0, 5.0, 8.0, 12.0), key=lambda s: _log_loss(s * margins, truth))
        network.weight.mul_(best)
        network.intercept.mul_(best)
    return network


def _log_loss(margins: NDArray[Any], truth: NDArray[Any]) -> float:
    shifted = margins - margins.max(1, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -float(log[np.arange(len(truth)), truth].mean())

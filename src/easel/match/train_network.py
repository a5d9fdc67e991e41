"""Trials of networks: one network on a held-out split, or a bag of one for each fold where data are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from easel.declare.program import Program
from easel.match.augment import augmentation
from easel.match.candidate import Candidate
from easel.match.embeddings import load_vectors
from easel.match.encode.bits import fit_bits
from easel.match.encode.images import LARGEST_SIDE, PictureEncoder, fit_pictures
from easel.match.encode.series import SeriesEncoder, fit_series, fit_trees
from easel.match.encode.texts import TextEncoder, fit_texts
from easel.match.examples import Example, Object
from easel.match.loop import Data, Objective, Schedule, fit, predict
from easel.match.model import Model
from easel.match.network_body import NetworkBody, finish, tensors, unscale_channels
from easel.match.networks import Wiring, build_network
from easel.match.objectives import (
    AdversarialObjective,
    BitObjective,
    ClassObjective,
    PictureObjective,
    SequenceObjective,
    ValueObjective,
)
from easel.match.propose import epochs_for
from easel.match.split import Round
from easel.match.targets import Classes, Values
from easel.match.templates import Task, match_program
from easel.match.train import Conditions, Learned
from easel.match.zoo.minirocket import MiniRocket
from easel.match.zoo.recovery import Critic
from easel.match.zoo.structured import TextNetwork


def train_network(
    candidate: Candidate,
    program: Program,
    examples: Sequence[Example],
    plan: Sequence[Round],
    target: Any,
    conditions: Conditions,
) -> Learned:
    inputs = [example.input for example in examples]
    outputs = [example.output for example in examples]
    source = _fit_source(candidate, program, inputs)
    if target is None:
        target = _fit_target(program, outputs)
    wiring = Wiring(source, target)
    data = Data(tensors(source, inputs), {"y": _target_tensor(target, outputs)})
    began = conditions.clock()
    networks: list[nn.Module] = []
    predicted: list[NDArray[Any]] = []
    stopped = "finished"
    curves: list[tuple[tuple[float, float], ...]] = []
    resumed = 0
    for number, one in enumerate(plan):
        torch.manual_seed(conditions.seed + 1000 * number)
        network = build_network(candidate, wiring, conditions.seed)
        train, validate = _part(data, one.train), _part(data, one.validate)
        if isinstance(network, MiniRocket):
            _fit_rocket(network, candidate, train, target, conditions.seed)
        else:
            if isinstance(network, TextNetwork) and isinstance(source, TextEncoder):
                _give_vectors(network, candidate, source, conditions.embeddings)
            epochs = conditions.epochs or epochs_for(candidate.family, len(one.train))
            schedule = Schedule(epochs, candidate.number("lr", 1e-3))

            def report(share: float, _: float, number: int = number) -> None:
                conditions.progress((number + share) / len(plan))

            found = fit(
                network,
                train,
                validate,
                _objective(candidate, wiring),
                schedule,
                seed=conditions.seed + number,
                out_of_time=_deadline(conditions, began, (number + 1) / len(plan)),
                augment=augmentation(candidate.text("augment", "none"))
                if _is_image(source, target)
                else _as_is,
                checkpoint=None
                if conditions.checkpoints is None
                else conditions.checkpoints / f"round-{number}.safetensors",
                progress=report,
            )
            curves.append(found.curve)
            resumed += found.resumed
            stopped = found.stopped if found.stopped == "out of time" else stopped
        networks.append(network.cpu())
        predicted.append(finish(predict(network, validate.inputs), target))
        conditions.progress((number + 1) / len(plan))
    validated = np.concatenate([one.validate for one in plan])
    raw = np.concatenate(predicted)
    truth = _truth(target, outputs, data.targets["y"], validated)
    if isinstance(networks[0], MiniRocket):
        networks = [_refit_rocket(candidate, wiring, data, target, truth, raw, conditions.seed)]
    if match_program(program).task is Task.TRANSLATE:
        truth, raw = _same_steps(truth, raw)
    body = NetworkBody(tuple(networks), source, target)
    return Learned(
        truth,
        raw,
        Model(program, candidate, source, target, body),
        stopped,
        validated,
        tuple(curves),
        resumed,
    )


def _fit_source(candidate: Candidate, program: Program, inputs: Sequence[Object]) -> Any:
    kind = match_program(program).name.split()[0]
    norm = candidate.text("norm", "standard")
    match kind:
        case "image":
            return fit_pictures(inputs, norm, int(candidate.number("side", LARGEST_SIDE)))
        case "time-series":
            return fit_series(program.input, inputs, norm)
        case "tree":
            return fit_trees(program.input, inputs, norm)
        case "text":
            return fit_texts(inputs)
        case _:
            return fit_bits(program.input, inputs)


def _fit_target(program: Program, outputs: Sequence[Object]) -> Any:
    match match_program(program).task:
        case Task.RECOVER:
            return fit_pictures(outputs, "standard")
        case Task.TRANSLATE:
            return fit_series(program.output, outputs, "standard")
        case _:
            return fit_bits(program.output, outputs)


def _target_tensor(target: Any, outputs: Sequence[Object]) -> Tensor:
    """What the loss compares with, in the network's own scale."""
    if isinstance(target, Classes):
        return torch.from_numpy(target(outputs))
    if isinstance(target, Values):
        return torch.from_numpy(target.scale(target(outputs))).float()
    encoded = target(outputs)
    if isinstance(target, SeriesEncoder):
        return torch.from_numpy(np.concatenate([encoded["x"], encoded["mask"][:, None]], axis=1))
    return torch.from_numpy(encoded["x"])


def _truth(target: Any, outputs: Sequence[Object], scaled: Tensor, rows: NDArray[np.intp]) -> NDArray[Any]:
    """The truth in the user's own terms, for the metric."""
    if isinstance(target, Classes | Values):
        return np.asarray(target([outputs[i] for i in rows]))
    chosen = scaled[torch.from_numpy(rows)].numpy()
    if isinstance(target, PictureEncoder):
        return unscale_channels(chosen, target.normalisation.mean, target.normalisation.deviation)
    if isinstance(target, SeriesEncoder):
        scale = target.normalisation
        values = unscale_channels(chosen[:, :-1], scale.mean, scale.deviation)
        return np.concatenate([values, chosen[:, -1:]], axis=1)
    return chosen


def _same_steps(truth: NDArray[Any], made: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """`(n, c + 1, l)` twice → `(n, c·l)` twice, with steps past the true end counted as right."""
    going = truth[:, -1:] > 0.5
    values, answers = truth[:, :-1], np.where(going, made[:, :-1], truth[:, :-1])
    return values.reshape(len(truth), -1), answers.reshape(len(truth), -1)


def _objective(candidate: Candidate, wiring: Wiring) -> Objective:
    match wiring.target:
        case Classes():
            return ClassObjective()
        case Values():
            return ValueObjective()
        case PictureEncoder(channels=made):
            if candidate.family != "pix2pix_gan" or not isinstance(wiring.source, PictureEncoder):
                return PictureObjective()
            critic = Critic(wiring.source.channels + made, candidate.number("width", 1.0))
            return AdversarialObjective(critic, candidate.number("lr", 1e-3))
        case SeriesEncoder():
            return SequenceObjective()
        case _:
            return BitObjective()


def _part(data: Data, rows: NDArray[np.intp]) -> Data:
    chosen = torch.from_numpy(rows)
    return Data(
        {k: v[chosen] for k, v in data.inputs.items()}, {k: v[chosen] for k, v in data.targets.items()}
    )


def _is_image(source: Any, target: Any) -> bool:
    """Only where the answer does not move with the picture."""
    return isinstance(source, PictureEncoder) and isinstance(target, Classes | Values)


def _deadline(conditions: Conditions, began: float, share: float) -> Callable[[], bool]:
    ends = began + conditions.budget_s * share
    return lambda: conditions.clock() > ends


def _as_is(batch: Any) -> Any:
    return batch


def _give_vectors(network: TextNetwork, candidate: Candidate, source: TextEncoder, path: Path | None) -> None:
    if candidate.text("embedding", "trained") == "given" and path is not None:
        load_vectors(path, source.words, network.embed.weight)


def _fit_rocket(network: MiniRocket, candidate: Candidate, train: Data, target: Any, seed: int) -> None:
    x, mask = train.inputs["x"], train.inputs["mask"]
    network.fit_biases(x, mask, torch.Generator().manual_seed(seed))
    features = torch.cat([network.features(x[i : i + 256], mask[i : i + 256]) for i in range(0, len(x), 256)])
    y = train.targets["y"].numpy()
    goal = 2.0 * np.eye(len(target.names))[y] - 1.0 if isinstance(target, Classes) else y
    network.fit_linear(features, goal, candidate.number("alpha", 1.0))


def _refit_rocket(
    candidate: Candidate, wiring: Wiring, data: Data, target: Any, truth: Any, predicted: Any, seed: int
) -> MiniRocket:
    """On everything; for classes the margins are stretched until the validated probabilities are honest."""
    network = build_network(candidate, wiring, seed)
    assert isinstance(network, MiniRocket)
    _fit_rocket(network, candidate, data, target, seed)
    if isinstance(target, Classes):
        margins = np.log(np.clip(predicted, 1e-12, 1.0))
        best = min((1.0, 2.0, 3.0, 5.0, 8.0, 12.0), key=lambda s: _log_loss(s * margins, truth))
        network.weight.mul_(best)
        network.intercept.mul_(best)
    return network


def _log_loss(margins: NDArray[Any], truth: NDArray[Any]) -> float:
    shifted = margins - margins.max(1, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -float(log[np.arange(len(truth)), truth].mean())

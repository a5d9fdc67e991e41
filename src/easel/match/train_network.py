"""Trials of networks: one network on a held-out split, or a bag of one for each fold where data are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.device import training_device
from easel.match.device_data import ByteScale, Data
from easel.match.embeddings import some_vectors
from easel.match.encode.images import PictureEncoder
from easel.match.encode.series import SeriesEncoder
from easel.match.encode.texts import MOST_WORDS, fit_texts
from easel.match.encoders import fit_source, fit_target
from easel.match.examples import Object
from easel.match.fit_rounds import best_bag, solve_on_all
from easel.match.fitting import Bag, Fitting, Vectors
from easel.match.kinds import Task
from easel.match.model import Model
from easel.match.network_body import NetworkBody, tensors, unscale_channels
from easel.match.networks import Wiring
from easel.match.objectives import (
    BitObjective,
    ClassObjective,
    PictureObjective,
    SequenceObjective,
    ValueObjective,
)
from easel.match.registry import network_family
from easel.match.split import part_of
from easel.match.targets import Classes, Values
from easel.match.templates import match_program
from easel.match.train import Conditions, Learned, Prepared
from easel.match.train_steps import Objective

BYTE_DEVICES = ("cuda",)
"""On CPUs pictures are made numbers once: there is nothing to copy."""


@dataclass(frozen=True)
class Encoded:
    """A trial of a network whose examples are encoded: what its networks are made from."""

    prepared: Prepared
    fitting: Fitting


def train_network(prepared: Prepared) -> Learned:
    encoded = encode(prepared)
    return learned_of(encoded, best_bag(encoded.fitting))


def encode(prepared: Prepared) -> Encoded:
    """Returns what the networks of a trial are made from."""
    candidate, program, conditions = prepared.candidate, prepared.program, prepared.conditions
    target, plan = prepared.target, prepared.plan
    inputs = [example.input for example in prepared.examples]
    outputs = [example.output for example in prepared.examples]
    vectors = _vectors(candidate, inputs, conditions)
    source = fit_source(candidate, program, inputs, vectors)
    if target is None:
        target = fit_target(program, outputs)
    wiring = Wiring(source, target)
    solved = network_family(candidate).solve is not None
    data = _data(source, inputs, _target_tensor(target, outputs), solved=solved)
    labels = data.targets["y"].cpu().numpy() if isinstance(target, Classes) else None
    if solved:
        plan = [part_of(one, conditions.part, conditions.seed, labels) for one in plan]
    fitting = Fitting(candidate, wiring, _objective, data, tuple(plan), conditions, vectors, labels)
    return Encoded(prepared, fitting)


def learned_of(encoded: Encoded, bag: Bag) -> Learned:
    """Returns what the networks of a trial answered, and the model that they make."""
    fitting = encoded.fitting
    candidate, program, plan = fitting.candidate, encoded.prepared.program, fitting.plan
    source, target = fitting.wiring.source, fitting.wiring.target
    validated = np.concatenate([one.validate for one in plan])
    outputs = [example.output for example in encoded.prepared.examples]
    truth, raw = _truth(target, outputs, fitting.data.targets["y"], validated), bag.predicted
    networks = bag.networks
    if fitting.family.solve is not None:
        whole = bag.reached >= 1.0
        shown = fitting.data if whole else fitting.data.only(torch.from_numpy(plan[0].train))
        networks = (solve_on_all(candidate, fitting.wiring, shown, fitting.conditions.seed),)
    if match_program(program).task is Task.TRANSLATE:
        truth, raw = _same_steps(truth, raw)
    return Learned(
        truth,
        raw,
        Model(program, candidate, source, target, NetworkBody(networks, source, target)),
        bag.stopped,
        validated,
        bag.curves,
        bag.resumed,
        bag.reached,
        bag.halved,
    )


def _data(source: Any, inputs: Sequence[Object], y: Tensor, *, solved: bool) -> Data:
    """Pictures for a GPU stay bytes, which are a quarter to copy, to keep and to read there."""
    if isinstance(source, PictureEncoder) and not solved and training_device().type in BYTE_DEVICES:
        found = source.in_bytes(inputs)
        if found is not None:
            scale = ByteScale(torch.from_numpy(source.byte_values()))
            return Data({"x": torch.from_numpy(found["x"])}, {"y": y}, scales={"x": scale})
    return Data(tensors(source, inputs), {"y": y})


def _vectors(candidate: Candidate, inputs: Sequence[Object], conditions: Conditions) -> Vectors:
    """Word vectors for a candidate that starts from given ones."""
    if not candidate.number("vectors", 0):
        return {}
    if conditions.embeddings is None:
        raise InvalidInput(f"{candidate.name} needs word vectors: give the app a GloVe file")
    return some_vectors(conditions.embeddings, fit_texts(inputs).words, MOST_WORDS)


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


def _objective(candidate: Candidate, wiring: Wiring, rate: float) -> Objective:
    own = network_family(candidate).objective
    if own is not None:
        return own(candidate, wiring, rate)
    match wiring.target:
        case Classes():
            return ClassObjective()
        case Values():
            return ValueObjective()
        case PictureEncoder():
            return PictureObjective()
        case SeriesEncoder():
            return SequenceObjective()
        case _:
            return BitObjective()

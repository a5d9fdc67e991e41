"""What runs on a device: one candidate on the examples of its input file set. Started from the warm pool."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.read import read_example
from easel.match.stored import StoredPair, read_lines
from easel.match.train import Conditions, train

__trials__ = ("learn",)


class Place(Protocol):
    """The part of a trial's context that learning needs."""

    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def input(self) -> Path: ...
    @property
    def output(self) -> Path: ...
    @property
    def checkpoint(self) -> Path: ...


def read_pairs(folder: Path, off: frozenset[str]) -> list[StoredPair]:
    """The pairs that are switched on, each once, in an order that does not depend on when they were fed."""
    found: dict[str, StoredPair] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for pair in read_lines(path.read_bytes()):
            if pair.digest not in off:
                found.setdefault(pair.digest, pair)
    return [found[digest] for digest in sorted(found)]


def learn(place: Place) -> dict[str, Any]:
    """Train, leave the model and each example's validation loss in the output, return the measurement.

    Arguments: `program`, `candidate`, `seed`, `budget_s`, and optionally `metric` and `off`, the digests of
    examples that are switched off.
    """
    wanted = place.arguments
    program = parse_program(wanted["program"])
    candidate = Candidate.from_json(wanted["candidate"])
    pairs = read_pairs(place.input, frozenset(wanted.get("off", ())))
    if not pairs:
        raise InvalidInput("all examples are switched off: switch some on, or feed new ones")
    examples = [read_example(program, pair.input, pair.output) for pair in pairs]
    conditions = Conditions(
        seed=int(wanted["seed"]),
        budget_s=float(wanted["budget_s"]),
        clock=time.monotonic,
        checkpoints=place.checkpoint,
        metric=wanted.get("metric"),
    )
    trained = train(candidate, program, examples, [pair.fold for pair in pairs], conditions)
    trained.model.save(place.output / "model")
    losses = {p.digest: float(v) for p, v in zip(pairs, trained.losses, strict=True) if math.isfinite(v)}
    (place.output / "losses.json").write_text(json.dumps(losses), encoding="utf-8")
    median = float(np.median(list(losses.values()))) if losses else 0.0
    return {
        **asdict(trained.measurement),
        "candidate": candidate.name,
        "examples": len(pairs),
        "median_loss": median,
    }

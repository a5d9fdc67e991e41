"""What runs on a device: one candidate on the examples of its input file set. Started from the warm pool."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.encode.images import compact_example, looks_at
from easel.match.examples import Example
from easel.match.pictures import LARGEST_SIDE
from easel.match.read import read_example
from easel.match.report import describe
from easel.match.stored import StoredPair, read_lines
from easel.match.suspects import rank_suspects
from easel.match.train import Conditions, train

__trials__ = ("learn", "suspect")


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


def read_pairs(folder: Path, off: frozenset[str]) -> Iterator[StoredPair]:
    """The pairs that are switched on, each once. A picture is read when its pair is."""
    seen = set(off)
    for path in sorted(folder.rglob("*.jsonl")):
        for pair in read_lines(
            path.read_bytes(), lambda name: (folder / name.lstrip("/")).read_bytes(), frozenset(seen)
        ):
            if pair.digest not in seen:
                seen.add(pair.digest)
                yield pair


def read_examples(program: Program, place: Place, side: int) -> tuple[list[str], list[int], list[Example]]:
    """Digests, folds and typed records, in an order that does not depend on when they were fed.

    Pictures are read one by one and kept no larger than `side`: a thousand photographs need not fit into memory.
    """
    off = frozenset(place.arguments.get("off", ()))
    read = [
        (pair.digest, pair.fold, compact_example(read_example(program, pair.input, pair.output), side))
        for pair in read_pairs(place.input, off)
    ]
    if not read:
        raise InvalidInput("all examples are switched off: switch some on, or feed new ones")
    read.sort(key=lambda one: one[0])
    digests, folds, examples = zip(*read, strict=True)
    return list(digests), list(folds), list(examples)


def learn(place: Place) -> dict[str, Any]:
    """Train, leave the model, its report and each example's validation loss in the output; the measurement.

    Arguments: `program`, `candidate`, `seed`, `budget_s`, and optionally `metric`, `off`, the digests of examples
    that are switched off, and `vectors`, the path of a GloVe file among the files.
    """
    wanted = place.arguments
    program = parse_program(wanted["program"])
    candidate = Candidate.from_json(wanted["candidate"])
    digests, folds, examples = read_examples(program, place, looks_at(candidate))
    vectors = wanted.get("vectors")
    conditions = Conditions(
        seed=int(wanted["seed"]),
        budget_s=float(wanted["budget_s"]),
        clock=time.monotonic,
        checkpoints=place.checkpoint,
        metric=wanted.get("metric"),
        embeddings=None if vectors is None else place.input / str(vectors).lstrip("/"),
    )
    trained = train(candidate, program, examples, folds, conditions)
    trained.model.save(place.output / "model")
    losses = {d: float(v) for d, v in zip(digests, trained.losses, strict=True) if math.isfinite(v)}
    (place.output / "losses.json").write_text(json.dumps(losses), encoding="utf-8")
    (place.output / "report.json").write_text(json.dumps(describe(trained)), encoding="utf-8")
    median = float(np.median(list(losses.values()))) if losses else 0.0
    return {
        **asdict(trained.measurement),
        "candidate": candidate.name,
        "examples": len(digests),
        "median_loss": median,
        "resumed_epochs": trained.learned.resumed,
    }


def suspect(place: Place) -> dict[str, Any]:
    """Judge every example by a model trained without its fold. Arguments: `program`, `seed`, `off`."""
    program = parse_program(place.arguments["program"])
    digests, _, examples = read_examples(program, place, LARGEST_SIDE)
    conditions = Conditions(seed=int(place.arguments["seed"]), budget_s=300.0, clock=time.monotonic)
    found = rank_suspects(program, examples, conditions)
    losses = {digests[one.position]: one.loss for one in found}
    (place.output / "losses.json").write_text(json.dumps(losses), encoding="utf-8")
    return {"judged": len(losses)}

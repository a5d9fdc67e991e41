"""What runs on a device: one candidate on the examples of its input file set. Started by a warm fork server."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.flow.apps.slice_files import open_checkpoint
from easel.match.candidate import Candidate
from easel.match.check import check_stored
from easel.match.costs import by_number
from easel.match.encode.images import compact_example, looks_at
from easel.match.ensemble import Answered, EnsembleBody, mix, side_by_side, within_limit
from easel.match.examples import Example
from easel.match.family import EstimatorFamily
from easel.match.judge import (
    all_scores,
    baseline,
    calibrate,
    chosen_apart,
    losses_by_example,
    sampling_error,
    score,
)
from easel.match.kinds import Task
from easel.match.luck import choice_luck
from easel.match.metrics import metric_for
from easel.match.model import Model, load_model
from easel.match.pictures import LARGEST_SIDE
from easel.match.pyfunc import describe_for_mlflow
from easel.match.read import read_example
from easel.match.registry import family_of
from easel.match.report import describe
from easel.match.roles import own_folds
from easel.match.slices import goes_on
from easel.match.split import FOLDS, rows_by_example
from easel.match.stored import StoredPair, Wanted, read_lines
from easel.match.suspects import rank_suspects
from easel.match.templates import match_program
from easel.match.train import Conditions, Trained, train
from easel.run.slice_files import keep_checkpoint

__trials__ = ("learn", "suspect", "combine")
__together__ = {"learn": "easel.flow.apps.learn_together:learn_together"}
LARGEST_PREDICTIONS = 64 * 2**20
MANY, FEW_VALIDATED = 10_000, 2_000
"""Of more examples a slice on a share reads only what it needs, and so many to validate it."""
_NOT_TWO = "there are no two models that could be combined and were validated on the same examples"


class LearningContext(Protocol):
    """The part of a trial's context that learning needs."""

    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def input(self) -> Path: ...
    @property
    def output(self) -> Path: ...
    @property
    def checkpoint(self) -> Path: ...
    def asked_to_give_way(self) -> bool: ...


def everything(digest: str, fold: int) -> bool:
    return True


def read_pairs(folder: Path, off: frozenset[str], wanted: Wanted = everything) -> Iterator[StoredPair]:
    """The `wanted` pairs that are switched on, each once. A picture is read when its pair is."""
    seen = set(off)
    for path in sorted(folder.rglob("*.jsonl")):
        for pair in read_lines(
            path.read_bytes(), lambda name: (folder / name.lstrip("/")).read_bytes(), frozenset(seen), wanted
        ):
            if pair.digest not in seen:
                seen.add(pair.digest)
                yield pair


def read_examples(
    program: Program, place: LearningContext, side: int, wanted: Wanted = everything
) -> tuple[list[str], list[int], list[Example]]:
    """Digests, folds and typed records, in an order that does not depend on when they were fed.

    Pictures are read one by one and kept no larger than `side`: a thousand photographs need not fit into memory.
    """
    off = frozenset(place.arguments.get("off", ()))
    read = [
        (pair.digest, pair.fold, compact_example(read_example(program, pair.input, pair.output), side))
        for pair in read_pairs(place.input, off, wanted)
    ]
    if not read:
        raise InvalidInput("all examples are switched off: switch some on, or feed new ones")
    read.sort(key=lambda one: one[0])
    digests, folds, examples = zip(*read, strict=True)
    return list(digests), own_folds(program, examples, folds), list(examples)


Read = Callable[[Program, LearningContext, int, Wanted], tuple[list[str], list[int], list[Example]]]


def part_of_many(until: float | None, count: int) -> Wanted | None:
    """Returns which of `count` examples a slice of this share trains on and is validated by; None means all.

    By the digest, so that a larger share has those of a smaller one too.
    """
    if until is None or until >= 1.0 or count < MANY:
        return None
    train, validate = float(until), max(float(until), FEW_VALIDATED * FOLDS / count)

    def wanted(digest: str, fold: int) -> bool:
        place = int(digest[:8], 16) / 16**8
        return place < (validate if fold == 0 else train)

    return wanted


_FOR_TABLES = ("easel.match.estimators",)
_FOR_NETWORKS = ("easel.match.loop", "easel.match.network_body", "easel.match.objectives")


def ahead(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that a trial with these arguments needs. They are imported where later trials find them too."""
    if "candidate" not in arguments:
        return _FOR_TABLES
    family = family_of(Candidate.from_json(arguments["candidate"]))
    own = (family.needs,) if family.needs else ()
    if not isinstance(family, EstimatorFamily):
        return (*own, *_FOR_NETWORKS)
    stored_by = ("skops.io",) if family.files is None else ()
    return (*own, *_FOR_TABLES, *stored_by)


@dataclass(frozen=True)
class Work:
    """A trial whose examples are read: `key` names its part of the output."""

    program: Program
    candidate: Candidate
    conditions: Conditions
    key: str
    digests: Sequence[str]
    folds: Sequence[int]
    examples: Sequence[Example]


def learn(place: LearningContext) -> dict[str, Any]:
    """Train, leave the model, its report and each example's validation loss in the output; the measurement.

    Arguments: `program`, `candidate`, `seed`, `budget_s`, and optionally `metric`, `off`, the digests of examples
    that are switched off, `vectors`, the path of a GloVe file among the files, `examples`, how many there are, and
    `until`, the share of the trial at which this slice of it ends. A trial that is not over leaves its checkpoint too.
    """
    work = open_work(place)
    trained = train(work.candidate, work.program, work.examples, work.folds, work.conditions)
    return keep_work(place, work, trained)


def open_work(place: LearningContext, read: Read = read_examples) -> Work:
    """Returns what a trial learns from, and how, as its arguments say."""
    wanted = place.arguments
    program = parse_program(wanted["program"])
    candidate = Candidate.from_json(wanted["candidate"])
    until = wanted.get("until")
    part = None if goes_on(candidate) else part_of_many(until, int(wanted.get("examples", 0)))
    digests, folds, examples = read(program, place, looks_at(candidate), part or everything)
    vectors = wanted.get("vectors")
    key = _key(candidate.name, digests, int(wanted["seed"]))
    if goes_on(candidate):
        open_checkpoint(place.checkpoint, key)
    conditions = Conditions(
        seed=int(wanted["seed"]),
        budget_s=float(wanted["budget_s"]),
        clock=time.monotonic,
        checkpoints=place.checkpoint if goes_on(candidate) else None,
        metric=wanted.get("metric"),
        until=None if until is None else float(until),
        examples_are_part=part is not None,
        give_way=place.asked_to_give_way,
        embeddings=None if vectors is None else place.input / str(vectors).lstrip("/"),
    )
    return Work(program, candidate, conditions, key, digests, folds, examples)


def keep_work(place: LearningContext, work: Work, trained: Trained) -> dict[str, Any]:
    """Leaves what was learned in the output; returns the measurement."""
    candidate, digests = work.candidate, work.digests
    # Models of one app lie at different paths, so that the versions of some can be read side by side.
    output = place.output / work.key
    trained.model.save(output / "model")
    describe_for_mlflow(output / "model", platform.python_version(), trained.measurement.metric)
    held_out = [one.input for one, fold in zip(work.examples, work.folds, strict=True) if fold == 0]
    checked = check_stored(output / "model", trained.model, held_out)
    reached = trained.learned.reached
    if reached < 1.0 and goes_on(candidate):
        keep_checkpoint(place.checkpoint, output / "checkpoint")
    losses = {d: float(v) for d, v in zip(digests, trained.losses, strict=True) if math.isfinite(v)}
    keep_predictions(output, [digests[i] for i in trained.learned.validated], trained.learned.predicted)
    learned, target = trained.learned, trained.model.target
    by_example = rows_by_example(learned.validated)
    about = describe(target, learned.truth, learned.predicted, by_example, learned.curves)
    keep_report(output, losses, about)
    median = float(np.median(list(losses.values()))) if losses else 0.0
    return {
        **asdict(trained.measurement),
        "candidate": candidate.name,
        "examples": len(digests),
        "median_loss": median,
        "resumed_epochs": trained.learned.resumed,
        "reached": reached,
        "check": asdict(checked),
        "halved": trained.learned.halved,
    }


def _key(name: str, digests: list[str], seed: int) -> str:
    return hashlib.blake2b(json.dumps([name, seed, digests]).encode(), digest_size=8).hexdigest()


def combine(place: LearningContext) -> dict[str, Any]:
    """The best mixture of models that were found before, chosen by their validated answers; the measurement.

    Arguments: `program`, `candidate`, `metric`, `members` (model sets by the key of their folder's file set), `seed`,
    `off` and `answer_s`, the longest that one answer may take.
    """
    wanted = place.arguments
    program = parse_program(wanted["program"])
    candidate = Candidate.from_json(wanted["candidate"])
    task = match_program(program).task
    began = time.monotonic()
    digests, _, examples = read_examples(program, place, LARGEST_SIDE)
    row_of = {digest: row for row, digest in enumerate(digests)}
    found = [path.parent for path in sorted(place.input.rglob("predictions.npz"))]
    if len(found) < 2:
        raise InvalidInput(_NOT_TWO)
    models = {folder.name: load_model(folder / "model") for folder in found}
    answers: dict[str, Answered] = {}
    for folder in found:
        with np.load(folder / "predictions.npz", allow_pickle=False) as kept:
            rows = np.array([row_of.get(digest, -1) for digest in kept["digests"].tolist()])
            answers[folder.name] = Answered(rows[rows >= 0], kept["predicted"][rows >= 0])
    first = max(answers, key=lambda name: len(answers[name].rows))
    target = models[first].target
    alike = [name for name in answers if models[name].target == target]
    quick = within_limit(
        {name: models[name] for name in alike}, [examples[0].input], float(wanted["answer_s"])
    )
    shared = side_by_side({name: answers[name] for name in quick})
    by_example = shared.by_example
    if len(quick) < 2 or len(by_example) < 10:
        raise InvalidInput(_NOT_TWO)
    truth = target([examples[row].output for row in shared.rows])
    name, _ = metric_for(task, wanted.get("metric"))
    metric = by_number(name, getattr(target, "names", ()))
    mixture = mix(task, metric, truth, shared.predicted, by_example)
    names = tuple(mixture.weights)
    body = EnsembleBody(tuple(models[name] for name in names), tuple(mixture.weights.values()), names)
    calibration = calibrate(task, truth, mixture.predicted, len(by_example))
    final = calibration.apply(mixture.predicted) if task is Task.CLASSIFY else mixture.predicted
    model = Model(program, candidate, None, target, body, calibration)
    output = place.output / _key(candidate.name, digests, int(wanted["seed"]))
    model.save(output / "model")
    describe_for_mlflow(output / "model", platform.python_version(), name)
    checked = check_stored(
        output / "model", model, [examples[row].input for row in shared.rows[by_example[:, 0]]]
    )
    chosen = chosen_apart(truth, final, by_example) if task is Task.CLASSIFY else {}
    scores = all_scores(task, truth, final, chosen)
    scores[name] = score(task, metric, truth, final, chosen)
    surprise = losses_by_example(task, truth, final, by_example)
    judged = shared.rows[by_example[:, 0]]
    losses = {digests[row]: float(lost) for row, lost in zip(judged, surprise, strict=True)}
    keep_report(output, losses, describe(target, truth, final, by_example))
    keep_predictions(output, [digests[row] for row in shared.rows], final)
    return {
        "metric": name,
        "quality": scores[name],
        "scores": scores,
        "error": sampling_error(task, metric, truth, final, chosen, by_example=by_example),
        "baseline": baseline(task, metric, truth, len(getattr(target, "names", ()))),
        "seconds": time.monotonic() - began,
        "candidate": candidate.name,
        "examples": len(digests),
        "validated_on": len(by_example),
        "check": asdict(checked),
        "luck": choice_luck(
            task, metric, truth, {**shared.predicted, "ensemble": mixture.predicted}, by_example=by_example
        ),
        "members": {models[name].candidate.name: weight for name, weight in mixture.weights.items()},
    }


def keep_report(folder: Path, losses: Mapping[str, float], about: Mapping[str, Any]) -> None:
    """Write each validated example's loss and what `describe` tells of the model, beside the model."""
    (folder / "losses.json").write_text(json.dumps(losses), encoding="utf-8")
    (folder / "report.json").write_text(json.dumps(about), encoding="utf-8")


def keep_predictions(folder: Path, digests: list[str], answers: NDArray[Any]) -> None:
    """Write the answers for these validated examples, turn by turn, beside the model: by them ensembles are chosen and
    trials scored in another metric.
    """
    predicted = np.asarray(answers, dtype=np.float32)
    if predicted.nbytes <= LARGEST_PREDICTIONS and predicted.ndim == 2:
        np.savez(folder / "predictions.npz", digests=np.array(digests), predicted=predicted)


def suspect(place: LearningContext) -> dict[str, Any]:
    """Judge every example by a model trained without its fold. Arguments: `program`, `seed`, `off`."""
    program = parse_program(place.arguments["program"])
    digests, _, examples = read_examples(program, place, LARGEST_SIDE)
    conditions = Conditions(seed=int(place.arguments["seed"]), budget_s=300.0, clock=time.monotonic)
    found = rank_suspects(program, examples, conditions)
    losses = {digests[one.position]: one.loss for one in found}
    (place.output / "losses.json").write_text(json.dumps(losses), encoding="utf-8")
    return {"judged": len(losses)}

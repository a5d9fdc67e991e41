"""Greedy ensemble selection (Caruana et al. 2004) over validated answers, and the model that its members make."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput
from easel.match.examples import Object
from easel.match.judge import score
from easel.match.kinds import Task
from easel.match.model import Model, load_model
from easel.match.split import rows_by_example

MOST_PICKS = 20
FEW = 200
"""Below so many validated examples choosing weights is choosing noise: the best few are averaged."""
PARTS = 5
MEMBER_FILE = "member.json"


@dataclass(frozen=True)
class Mixture:
    """`weights[name]` of the members, 1 in all; `predicted` are the validated answers of the whole, each by weights
    chosen without its part of the examples, so that `predicted` may be scored.
    """

    weights: Mapping[str, float]
    predicted: NDArray[Any]


@dataclass(frozen=True)
class Answered:
    """What one candidate answered to validated examples: `rows[i]` names the example of `predicted[i]`, in turns."""

    rows: NDArray[np.intp]
    predicted: NDArray[Any]


@dataclass(frozen=True)
class Shared:
    """Answers of several candidates to the same examples, side by side: of example `rows[i]`, as often as any of them
    was validated; who was so less often gives the same answer again.
    """

    rows: NDArray[np.intp]
    predicted: Mapping[str, NDArray[Any]]

    @property
    def by_example(self) -> NDArray[np.intp]:
        """`(n, turns)`: the places of each example's answers."""
        return rows_by_example(self.rows)


def side_by_side(members: Mapping[str, Answered]) -> Shared:
    """Returns the answers to those examples that all members answered, in the order of the examples."""
    places = {name: rows_by_example(one.rows) for name, one in members.items()}
    named = {name: members[name].rows[places[name][:, 0]] for name in members}
    common = reduce(np.intersect1d, named.values())
    turns = max(found.shape[1] for found in places.values())
    predicted = {}
    for name, one in members.items():
        mine = places[name][np.isin(named[name], common)]
        # a member with fewer turns answers with its first
        column = [turn if turn < mine.shape[1] else 0 for turn in range(turns)]
        predicted[name] = one.predicted[mine[:, column].ravel()]
    return Shared(np.repeat(common, turns), predicted)


def mix(
    task: Task,
    metric: str,
    truth: NDArray[Any],
    members: Mapping[str, NDArray[Any]],
    by_example: NDArray[np.intp] | None = None,
) -> Mixture:
    """The mixture of the members' answers `(n, D)` that scores best; `by_example` as in `Shared`."""
    of = np.arange(len(truth))[:, None] if by_example is None else by_example
    part = np.empty(len(truth), dtype=int)
    part[of] = (np.arange(len(of)) % PARTS)[:, None]
    few = len(of) < FEW
    predicted = np.empty_like(next(iter(members.values())), dtype=float)
    for k in range(PARTS):
        learn, rest = part != k, part == k
        if not rest.any():
            continue
        weights = choose(task, metric, truth[learn], {name: p[learn] for name, p in members.items()}, few=few)
        predicted[rest] = _sum(weights, {name: p[rest] for name, p in members.items()})
    return Mixture(choose(task, metric, truth, members, few=few), predicted)


def choose(
    task: Task, metric: str, truth: NDArray[Any], members: Mapping[str, NDArray[Any]], *, few: bool = False
) -> dict[str, float]:
    """Add the member that helps most, again and again, the same one more than once if it does.

    Where examples are `few` the best three are averaged.
    """
    alone = {name: score(task, metric, truth, p) for name, p in members.items()}
    ranked = sorted(alone, key=lambda name: -alone[name])
    if few:
        kept = ranked[: min(3, len(ranked))]
        return {name: 1 / len(kept) for name in kept}
    picked = [ranked[0]]
    total = np.asarray(members[ranked[0]], dtype=float).copy()
    best, best_count = alone[ranked[0]], 1
    for count in range(2, MOST_PICKS + 1):
        tried = {name: score(task, metric, truth, (total + p) / count) for name, p in members.items()}
        name = max(tried, key=lambda one: tried[one])
        picked.append(name)
        total += members[name]
        if tried[name] > best + 1e-9:
            best, best_count = tried[name], count
    kept = picked[:best_count]
    return {name: kept.count(name) / best_count for name in dict.fromkeys(kept)}


def _sum(weights: Mapping[str, float], members: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    whole: NDArray[Any] = np.sum([weight * members[name] for name, weight in weights.items()], axis=0)
    return whole


def within_limit(
    models: Mapping[str, Model],
    inputs: Sequence[Object],
    limit_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[str]:
    """The members whose answers, one object at a time, together take no longer than `limit_s`; quick ones first."""
    took: dict[str, float] = {}
    for name, model in models.items():
        model.predict(inputs[:1])
        began = clock()
        model.predict(inputs[:1])
        took[name] = clock() - began
    kept: list[str] = []
    for name in sorted(took, key=lambda one: took[one]):
        if not kept or sum(took[one] for one in kept) + took[name] <= limit_s:
            kept.append(name)
    return kept


@dataclass(frozen=True)
class EnsembleBody:
    """The weighted mean of its members' calibrated answers; `names` say which trials they came from."""

    members: tuple[Model, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "ensemble"

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        whole: NDArray[Any] = np.sum(
            [w * member.predict(inputs) for w, member in zip(self.weights, self.members, strict=True)], axis=0
        )
        return whole

    def save(self, folder: Path) -> None:
        listed = []
        for number, (member, weight, name) in enumerate(
            zip(self.members, self.weights, self.names, strict=True)
        ):
            own = folder / f"member-{number}"
            member.save(own)
            # There is one model.json in a model set: that of the whole.
            shutil.move(own / "model.json", own / MEMBER_FILE)
            listed.append(
                {"folder": own.name, "weight": weight, "model": name, "candidate": member.candidate.name}
            )
        (folder / "members.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")


def load_ensemble(folder: Path) -> EnsembleBody:
    listed = json.loads((folder / "members.json").read_text(encoding="utf-8"))
    if not listed:
        raise InvalidInput("the ensemble has no members")
    members = tuple(load_model(folder / one["folder"], MEMBER_FILE) for one in listed)
    return EnsembleBody(
        members, tuple(one["weight"] for one in listed), tuple(one["model"] for one in listed)
    )

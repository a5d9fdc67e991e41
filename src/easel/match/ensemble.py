"""Greedy ensemble selection (Caruana et al. 2004) over validated answers, and the model that its members make."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput
from easel.match.examples import Object
from easel.match.judge import score
from easel.match.kinds import Task
from easel.match.model import Model, load_model

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


def mix(task: Task, metric: str, truth: NDArray[Any], members: Mapping[str, NDArray[Any]]) -> Mixture:
    """The mixture of the members' answers `(n, D)` that scores best."""
    part = np.arange(len(truth)) % PARTS
    predicted = np.empty_like(next(iter(members.values())), dtype=float)
    for k in range(PARTS):
        learn, rest = part != k, part == k
        if not rest.any():
            continue
        weights = choose(task, metric, truth[learn], {name: p[learn] for name, p in members.items()})
        predicted[rest] = _sum(weights, {name: p[rest] for name, p in members.items()})
    return Mixture(choose(task, metric, truth, members), predicted)


def choose(
    task: Task, metric: str, truth: NDArray[Any], members: Mapping[str, NDArray[Any]]
) -> dict[str, float]:
    """Add the member that helps most, again and again, the same one more than once if it does."""
    alone = {name: score(task, metric, truth, p) for name, p in members.items()}
    ranked = sorted(alone, key=lambda name: -alone[name])
    if len(truth) < FEW:
        few = ranked[: min(3, len(ranked))]
        return {name: 1 / len(few) for name in few}
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

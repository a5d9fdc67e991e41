"""How well a project's apps are served: the best score of each over time, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from easel.records.identity import Caller
from easel.store import past_trials
from easel.store.engine import Tx

MOST_STEPS = 400


@dataclass(frozen=True, slots=True)
class QualityStep:
    """From `at` on the best score is `quality`."""

    at: datetime
    quality: float


@dataclass(frozen=True)
class AppSteps:
    app: str
    steps: list[QualityStep]


@dataclass(frozen=True)
class Happiness:
    """`mean` is over the apps that have a model; each app's own steps only ever rise."""

    mean: list[QualityStep]
    items: list[AppSteps]


def happiness(tx: Tx, caller: Caller) -> Happiness:
    found: dict[str, list[QualityStep]] = {}
    for row in past_trials.ended(tx, caller.project_id):
        if row.quality is not None:
            at = row.started_at + timedelta(seconds=row.seconds or 0.0)
            found.setdefault(row.name, []).append(QualityStep(at, row.quality))
    items = [AppSteps(app, rising(steps)) for app, steps in sorted(found.items())]
    return Happiness(thinned(mean_of([item.steps for item in items])), items)


def rising(steps: Sequence[QualityStep]) -> list[QualityStep]:
    """The improvements among them, by time."""
    kept: list[QualityStep] = []
    for step in sorted(steps, key=lambda step: step.at):
        if not kept or step.quality > kept[-1].quality:
            kept.append(step)
    return kept


def mean_of(curves: Sequence[Sequence[QualityStep]]) -> list[QualityStep]:
    """The mean of the step functions, each counted from its first step on."""
    changes = sorted((step.at, k, step.quality) for k, steps in enumerate(curves) for step in steps)
    best: dict[int, float] = {}
    total, found = 0.0, list[QualityStep]()
    for at, k, quality in changes:
        total += quality - best.get(k, 0.0)
        best[k] = quality
        found.append(QualityStep(at, total / len(best)))
    return found


def thinned(steps: list[QualityStep], most: int = MOST_STEPS) -> list[QualityStep]:
    """Returns at most so many of them, the last among them."""
    if len(steps) <= most:
        return steps
    return [steps[(i + 1) * len(steps) // most - 1] for i in range(most)]

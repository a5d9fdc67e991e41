"""First guesses of seconds from experience: how long each candidate took on public data of many sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from easel.flow.experience.file import packaged_experience
from easel.match.candidate import Candidate
from easel.match.propose import estimate_cost
from easel.match.summary import DataSummary
from easel.price.size_law import DataSize, SizedRun, SizeLaws, size_laws
from easel.schedule.experience import Experience


def laws_of(experience: Experience, *, classes: bool) -> SizeLaws:
    """The laws of candidates on sets with classes, or with numbers to foretell."""
    return size_laws(
        [
            SizedRun(name, name.partition("(")[0], DataSize(p.rows, p.columns, p.classes), outcome.seconds)
            for one in experience.sets
            for p in [one.properties]
            if (p.classes > 0) == classes
            for name, outcome in one.outcomes.items()
        ]
    )


@cache
def _packaged_laws(classes: bool) -> SizeLaws:
    return laws_of(packaged_experience(), classes=classes)


def with_experienced_costs(
    candidates: Sequence[Candidate], summary: DataSummary, laws: SizeLaws | None = None
) -> tuple[Candidate, ...]:
    """The candidates with the seconds that experience expects on such data; their own estimates where it has none.

    On more data than a family was seen on, seconds grow from there as its own estimate says. What a family was seen to
    take stands for its cheapest candidate where one was not seen often: the dearer ones took too long to be seen.
    """
    laws = laws or _packaged_laws(summary.classes > 0)
    least: dict[str, float] = {}
    for one in candidates:
        least[one.family] = min(one.cost_s, least.get(one.family, one.cost_s))
    return tuple(_with_experience(one, summary, laws, least[one.family]) for one in candidates)


def _with_experience(candidate: Candidate, summary: DataSummary, laws: SizeLaws, least: float) -> Candidate:
    """`least`: what the family's cheapest candidate is estimated at."""
    size = DataSize(summary.examples, summary.cells, summary.classes)
    seen = laws.within(candidate.family, size)
    guess = laws.guess(candidate.name, candidate.family, seen)
    if guess is None:
        return candidate
    if candidate.name not in laws.names:
        guess *= candidate.cost_s / max(least, 1e-3)
    growth = 1.0 if seen == size else max(candidate.cost_s / _estimate(candidate, summary, seen), 1.0)
    return replace(candidate, cost_s=guess * growth)


def _estimate(candidate: Candidate, summary: DataSummary, size: DataSize) -> float:
    """Returns the family's own estimate on data of the size; fewer columns of a picture are a smaller picture."""
    side = summary.side * math.sqrt(min(1.0, size.columns / max(summary.cells, 1)))
    there = replace(
        summary,
        examples=int(size.rows),
        cells=int(size.columns),
        classes=int(size.classes),
        side=round(side),
    )
    return max(estimate_cost(candidate, there), 1e-3)

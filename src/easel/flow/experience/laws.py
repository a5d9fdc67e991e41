"""First guesses of seconds from experience: how long each candidate took on public data of many sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from easel.flow.experience.file import packaged_experience
from easel.match.candidate import Candidate
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
    """The candidates with the seconds that experience expects on such data; their own estimates where it has none."""
    laws = laws or _packaged_laws(summary.classes > 0)
    size = DataSize(summary.examples, summary.cells, summary.classes)
    found = ((one, laws.guess(one.name, one.family, size)) for one in candidates)
    return tuple(one if guess is None else replace(one, cost_s=guess) for one, guess in found)

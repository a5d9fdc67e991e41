"""What candidates will cost here: their estimates, corrected by what trials really took on this pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from easel.match.candidate import Candidate
from easel.records.app import AppTrial

START_S = 0.3
"""What starting a trial, fetching its examples and storing its model takes at least."""


def calibrated(
    candidates: Sequence[Candidate], past: Sequence[tuple[Candidate, AppTrial]]
) -> tuple[Candidate, ...]:
    """Each estimate × exp(mean log ratio of measured to estimated time), of its family and of all.

    With n measured trials of a family its own ratio weighs n / (n + 1), that of all families the rest; the
    latter is itself shrunk towards 1 as if two trials had taken what was estimated.
    """
    ratios: dict[str, list[float]] = {}
    for candidate, trial in past:
        if trial.quality is not None and trial.seconds and trial.seconds > 0:
            expected = max(candidate.cost_s, START_S)
            ratios.setdefault(candidate.family, []).append(math.log(max(trial.seconds, START_S) / expected))
    everything = [ratio for found in ratios.values() for ratio in found]
    overall = sum(everything) / (len(everything) + 2.0)

    def cost(candidate: Candidate) -> float:
        own = ratios.get(candidate.family, [])
        shift = (sum(own) + overall) / (len(own) + 1.0)
        return max(candidate.cost_s, START_S) * math.exp(shift)

    return tuple(replace(candidate, cost_s=cost(candidate)) for candidate in candidates)

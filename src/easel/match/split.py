"""Which examples validate: a fold for each example, fixed when it is fed and never changed afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
SMALL = 1_000
"""Below this many examples every fold validates once (k-fold); from here on fold 0 is the held-out split."""


def assign_folds(strata: Sequence[str], already: Counter[tuple[str, int]] | None = None) -> list[int]:
    """A fold for each new example so that every stratum stays evenly spread.

    `already[(stratum, fold)]` counts the examples fed before. Of the least filled folds of a stratum, the one
    that is least filled over all strata is taken, so that many rare classes do not all land in fold 0.
    """
    counts = Counter(already or {})
    totals = Counter[int]()
    for (_, fold), count in counts.items():
        totals[fold] += count
    chosen = []
    for stratum in strata:
        fold = min(range(FOLDS), key=lambda f: (counts[(stratum, f)], totals[f], f))
        counts[(stratum, fold)] += 1
        totals[fold] += 1
        chosen.append(fold)
    return chosen


@dataclass(frozen=True)
class Round:
    """Indices to train on and to validate on."""

    train: NDArray[np.intp]
    validate: NDArray[np.intp]


def rounds(folds: Sequence[int]) -> tuple[Round, ...]:
    """One round for a held-out split, one for every fold in use where data are few."""
    of = np.asarray(folds)
    if len(of) < 2:
        return (Round(np.arange(len(of)), np.arange(len(of))),)
    used = [fold for fold in range(FOLDS) if (of == fold).any()]
    if len(used) == 1:
        of = np.arange(len(of)) % min(FOLDS, len(of))
        used = list(range(int(of.max()) + 1))
    chosen = used if len(of) < SMALL else used[:1]
    return tuple(Round(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in chosen)

"""Which examples validate: a fold for each example, fixed when it is fed and never changed afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
SMALL = 1_000
"""Below this many examples every fold validates once (k-fold); from here on fold 0 is the held-out split."""
MOST_NEAR = 10
"""So many nearly equal examples share a fold."""


def assign_folds(
    strata: Sequence[str],
    already: Counter[tuple[str, int]] | None = None,
    near: Sequence[str | None] = (),
    homes: Mapping[str, Sequence[int]] | None = None,
) -> list[int]:
    """A fold for each new example so that every stratum stays evenly spread.

    `already[(stratum, fold)]` counts the examples fed before. Of the least filled folds of a stratum, the one
    that is least filled over all strata is taken, so that many rare classes do not all land in fold 0.

    Examples with the same key in `near` are nearly the same and share a fold, or validation would ask for what
    was learned by heart; `homes[key]` are the folds of those fed before. Of more than `MOST_NEAR` alike the rest
    is spread again: then it is how the data are, not an accident.
    """
    counts = Counter(already or {})
    totals = Counter[int]()
    for (_, fold), count in counts.items():
        totals[fold] += count
    alike = {key: list(folds) for key, folds in (homes or {}).items()}
    chosen = []
    for number, stratum in enumerate(strata):
        key = near[number] if near else None
        twins = alike.setdefault(key, []) if key is not None else []
        if 0 < len(twins) < MOST_NEAR:
            fold = twins[0]
        else:
            fold = min(range(FOLDS), key=lambda f: (counts[(stratum, f)], totals[f], f))
        twins.append(fold)
        counts[(stratum, fold)] += 1
        totals[fold] += 1
        chosen.append(fold)
    return chosen


LEAST_EXAMPLES = 40
"""A slice trains on no fewer: with a handful the classes would not all be there."""


@dataclass(frozen=True)
class Round:
    """Indices to train on and to validate on."""

    train: NDArray[np.intp]
    validate: NDArray[np.intp]


def part_of(one: Round, share: float | None, seed: int) -> Round:
    """The round with a share of its examples to train on; a larger share has those of a smaller one too."""
    if share is None or share >= 1.0:
        return one
    order = np.random.default_rng(seed).permutation(len(one.train))
    count = min(len(order), max(LEAST_EXAMPLES, round(share * len(order))))
    return Round(one.train[np.sort(order[:count])], one.validate)


def rounds(folds: Sequence[int], *, ordered: bool = False) -> tuple[Round, ...]:
    """One round for a held-out split, one for every fold in use where data are few.

    Folds that are `ordered` in time are validated by models of earlier ones alone: the future stays out.
    """
    of = np.asarray(folds)
    if ordered and len(set(folds)) > 1:
        later = sorted(set(folds))[1:]
        kept = later if len(of) < SMALL else later[-1:]
        return tuple(Round(np.flatnonzero(of < fold), np.flatnonzero(of == fold)) for fold in kept)
    if len(of) < 2:
        return (Round(np.arange(len(of)), np.arange(len(of))),)
    used = [fold for fold in range(FOLDS) if (of == fold).any()]
    if len(used) == 1:
        of = np.arange(len(of)) % min(FOLDS, len(of))
        used = list(range(int(of.max()) + 1))
    chosen = used if len(of) < SMALL else used[:1]
    return tuple(Round(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in chosen)

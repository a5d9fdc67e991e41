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


FEW, TURNS = 200, 3
"""Below so many examples one deal of the folds is itself a matter of luck: estimators are validated by so many."""


def turns_of(examples: int) -> int:
    """Returns how often an estimator is cross-validated."""
    return TURNS if examples < FEW else 1


LEAST_EXAMPLES = 40
"""A slice trains on no fewer: with a handful the classes would not all be there."""


@dataclass(frozen=True)
class Round:
    """Indices to train on and to validate on; `turn`: 0 for the fixed folds, more where folds are dealt anew."""

    train: NDArray[np.intp]
    validate: NDArray[np.intp]
    turn: int = 0


def part_of(one: Round, share: float | None, seed: int, labels: NDArray[np.int64] | None = None) -> Round:
    """The round with a share of its examples to train on; a larger share has those of a smaller one too.

    With `labels`, the class of every example, each class has its share, and two examples at least.
    """
    if share is None or share >= 1.0:
        return one
    order = np.random.default_rng(seed).permutation(len(one.train))
    if labels is not None:
        order = order[np.argsort(_places_in_class(labels[one.train[order]]), kind="stable")]
    count = min(len(order), max(LEAST_EXAMPLES, round(share * len(order))))
    return Round(one.train[np.sort(order[:count])], one.validate, one.turn)


def _places_in_class(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns for each how far through its class it is, from 0 to 1; the first two of every class come first of all."""
    place = np.empty(len(labels))
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        place[mine[:2]] = 0.0
    return place


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


def rows_by_example(validated: NDArray[np.intp]) -> NDArray[np.intp]:
    """`(n, turns)`: for each validated example the places of its answers, one of every turn, in the order of turns."""
    order = np.argsort(validated, kind="stable")
    count = len(np.unique(validated))
    if count and len(order) % count:
        raise ValueError("some examples were validated more often than others")
    return order.reshape(count, -1)

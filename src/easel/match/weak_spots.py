"""Where a model fails: groups of examples that it answers clearly worse than the rest, and the worst single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType
from easel.match.examples import Object, Single

LEAST = 8
"""Groups of fewer held-out examples say nothing."""
MOST_VALUES = 50
CHANCE = 0.05
"""How often a group is named by chance, over all that were looked at."""
MOST_GROUPS = 10


@dataclass(frozen=True)
class WeakGroup:
    """`error` is the mean loss of its `examples`, `elsewhere` that of all others."""

    where: str
    examples: int
    error: float
    elsewhere: float


def worst_groups(
    data_type: DataType, inputs: Sequence[Object], labels: Sequence[str], losses: NDArray[np.float64]
) -> list[WeakGroup]:
    """Groups by class, by category and by quarter of each number whose losses are larger than chance allows.

    The more groups there are, the clearer each must stand out (Bonferroni).
    """
    found = [(name, rows) for name, rows in _groups(data_type, inputs, labels) if rows.sum() >= LEAST]
    found = [(name, rows) for name, rows in found if (~rows).sum() >= LEAST]
    if not found:
        return []
    limit = NormalDist().inv_cdf(1 - CHANCE / len(found))
    told = []
    for name, rows in found:
        inside, outside = losses[rows], losses[~rows]
        spread = np.sqrt(_variance(inside) / len(inside) + _variance(outside) / len(outside))
        distance = float(inside.mean() - outside.mean())
        if distance > limit * max(float(spread), 1e-12):
            told.append(WeakGroup(name, int(rows.sum()), float(inside.mean()), float(outside.mean())))
    return sorted(told, key=lambda one: one.elsewhere - one.error)[:MOST_GROUPS]


def _variance(values: NDArray[np.float64]) -> float:
    """Drawn a little towards that of a coin, so that a few equal losses do not look certain."""
    own = float(values.var())
    scale = max(float(values.mean()) ** 2, 1e-12)
    return (own * len(values) + 0.25 * scale) / (len(values) + 1)


def _groups(
    data_type: DataType, inputs: Sequence[Object], labels: Sequence[str]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    names = np.asarray(labels)
    for label in sorted(set(labels) - {""})[:MOST_VALUES]:
        yield f"class {label}", names == label
    singles = [one for one in inputs if isinstance(one, Single)]
    if len(singles) < len(inputs):
        return
    for position, name in enumerate(data_type.field_names):
        yield from _by_column(name, [one.values[position] for one in singles])


def _by_column(name: str, values: list[object]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    missing = np.array([v is None or (isinstance(v, float) and v != v) for v in values])
    if missing.any():
        yield f"{name} is missing", missing
    words = [v if isinstance(v, str) else None for v in values]
    kinds = {word for word in words if word is not None}
    if kinds and len(kinds) <= MOST_VALUES:
        for kind in sorted(kinds):
            yield f"{name} = {kind[:60]}", np.array([word == kind for word in words])
    if all(isinstance(v, float) for v, gone in zip(values, missing, strict=True) if not gone):
        numbers = np.array([v if isinstance(v, float) else np.nan for v in values])
        known = numbers[np.isfinite(numbers)]
        if len(set(known.tolist())) < 4:
            for value in sorted(set(known.tolist())):
                yield f"{name} = {value:g}", numbers == value
            return
        cuts = np.quantile(known, [0.25, 0.5, 0.75])
        bins = np.digitize(numbers, cuts)
        bounds = [-np.inf, *cuts.tolist(), np.inf]
        for k in range(4):
            yield _span(name, bounds[k], bounds[k + 1]), (bins == k) & np.isfinite(numbers)


def _span(name: str, low: float, high: float) -> str:
    if low == -np.inf:
        return f"{name} < {high:.4g}"
    return f"{name} ≥ {low:.4g}" if high == np.inf else f"{low:.4g} ≤ {name} < {high:.4g}"

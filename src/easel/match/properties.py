"""What examples are like, in a few numbers: by them a new app finds the earlier ones that it resembles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, Program
from easel.match.examples import Chain, Example, Object, Single
from easel.match.kinds import Task
from easel.match.summary import strata, summarise
from easel.match.templates import match_program

MOST_ROWS, MOST_COLUMNS = 1_000, 60
"""A sample of this size says enough about missing cells and correlations."""


def properties_of(program: Program, examples: Sequence[Example]) -> dict[str, float]:
    """rows, columns, classes, missing, balance, correlation and categorical, by name."""
    summary = summarise(program, examples)
    sample = examples[:: max(1, len(examples) // MOST_ROWS)]
    x = _matrix([example.input for example in sample])
    kinds = [isinstance(field, Category) for field in program.input.fields]
    return {
        "rows": float(summary.examples),
        "columns": float(summary.cells),
        "classes": float(summary.classes),
        "missing": float(np.isnan(x).mean()) if x.size else 0.0,
        "balance": _balance(program, examples),
        "correlation": _correlation(x),
        "categorical": float(np.mean(kinds)) if kinds else 0.0,
    }


def _balance(program: Program, examples: Sequence[Example]) -> float:
    """Entropy of the classes over the largest possible; 1 for numbers."""
    if match_program(program).task is not Task.CLASSIFY:
        return 1.0
    counts = np.array(list(Counter(strata(program, examples)).values()), dtype=float)
    if len(counts) < 2:
        return 0.0
    share = counts / counts.sum()
    return float(-(share * np.log(share)).sum() / np.log(len(share)))


def _matrix(objects: Sequence[Object]) -> NDArray[np.float64]:
    """`(n, columns)` of the first numbers of each input; NaN where a value is missing, categories as numbers."""
    names: dict[str, float] = {}
    rows = [_numbers(one, names) for one in objects]
    width = min((len(row) for row in rows), default=0)
    return np.array([row[:width] for row in rows], dtype=float).reshape(len(rows), width)


def _numbers(one: Object, names: dict[str, float]) -> list[float]:
    found: list[float] = []
    values = one.columns if isinstance(one, Chain) else one.values if isinstance(one, Single) else ()
    for value in values:
        if isinstance(value, np.ndarray):
            found += np.asarray(value, dtype=float).ravel()[:MOST_COLUMNS].tolist()
        elif value is None:
            found.append(np.nan)
        elif isinstance(value, str):
            found.append(names.setdefault(value[:50], float(len(names))))
        elif isinstance(value, float | int):
            found.append(float(value))
        if len(found) >= MOST_COLUMNS:
            break
    return found[:MOST_COLUMNS]


def _correlation(x: NDArray[np.float64]) -> float:
    """The mean absolute correlation over pairs of columns that vary."""
    if x.shape[0] < 3 or x.shape[1] < 2:
        return 0.0
    known = ~np.isnan(x)
    counts = np.maximum(known.sum(0), 1)
    centre = np.where(known, x, 0.0).sum(0) / counts
    z = np.where(known, x - centre, 0.0)
    size = np.sqrt((z * z).sum(0))
    z = z[:, size > 1e-12 * np.maximum(np.abs(centre), 1.0)]
    if z.shape[1] < 2:
        return 0.0
    z = z / np.sqrt((z * z).sum(0))
    r = np.abs(z.T @ z)
    k = r.shape[0]
    return float((r.sum() - np.trace(r)) / (k * (k - 1)))

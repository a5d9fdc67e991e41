"""How much each column moved each answer: exact Shapley values, for the families that have them.

A family says so by `contributions` of its record; for all others there is permutation importance alone. Values are in
the unit in which the model adds up: the number itself, or the log-odds of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType
from easel.match.encode.tables import TableEncoder
from easel.match.estimator_body import EstimatorBody, matrix
from easel.match.examples import Object
from easel.match.family import EstimatorFamily
from easel.match.importance import MOST_ELEMENTS
from easel.match.model import Model
from easel.match.registry import all_families, family_of
from easel.match.targets import Classes

Floats = NDArray[np.float64]
MOST_ROWS, MOST_BACKGROUND = 200, 200
MOST_COLUMNS = 2_000
MOST_REASONS = 3


@dataclass(frozen=True)
class Contribution:
    """`mean` of the sizes of what a column adds to or takes from the answers. `direction`: +1 where larger numbers
    always add, −1 where they always take away; None where the column is no number or there are several answers.
    """

    column: str
    mean: float
    direction: float | None


@dataclass(frozen=True)
class Shapley:
    """`values` `(n, columns, outputs)` of the held-out examples."""

    columns: tuple[str, ...]
    values: Floats
    unit: str
    numbers: Mapping[str, Floats]
    """The columns that are one number each."""


def shapley_of(
    model: Model, data_type: DataType, asked: Sequence[Object], known: Sequence[Object]
) -> Shapley | str:
    """Returns exact Shapley values of the answers to `asked` against the mean of `known`; or why there are none."""
    family = family_of(model.candidate)
    body, source = model.body, model.source
    exact = family.contributions if isinstance(family, EstimatorFamily) else None
    if exact is None or not isinstance(body, EstimatorBody):
        have = sorted(
            name
            for name, one in all_families().items()
            if isinstance(one, EstimatorFamily) and one.contributions
        )
        return (
            f"{family.name} has no exact Shapley values (those that have: {', '.join(have)}): "
            "see what matters by shuffling one column at a time"
        )
    if not isinstance(source, TableEncoder):
        return "exact Shapley values are told of tables only"
    names = matrix_columns(data_type, source)
    if len(names) > MOST_COLUMNS:
        return f"the model reads {len(names):,} columns; Shapley values are told of at most {MOST_COLUMNS:,}"
    x = np.asarray(matrix(source, asked[:MOST_ROWS]), dtype=float)
    background = np.asarray(matrix(source, known[:MOST_BACKGROUND]), dtype=float)
    found = exact(body.estimator, x, background)
    columns = tuple(dict.fromkeys(names))
    summed = np.zeros((len(x), len(columns), found.shape[2]))
    place = {name: k for k, name in enumerate(columns)}
    for j, name in enumerate(names):
        summed[:, place[name]] += found[:, j]
    alone = {
        name: x[:, j] for j, name in enumerate(names) if names.count(name) == 1 and not source.categorical[j]
    }
    return Shapley(columns, summed, _unit(model), alone)


def _unit(model: Model) -> str:
    if not isinstance(model.target, Classes):
        return "the answered number"
    names = model.target.names
    return f"log-odds of {names[1]}" if len(names) == 2 else "log-odds of each class"


def matrix_columns(data_type: DataType, source: TableEncoder) -> list[str]:
    """Returns for each column of the matrix the column of the table that it is a part of."""
    found: list[str] = []
    for name, coder in zip(data_type.field_names, source.columns, strict=True):
        plain = not (coder.vocabulary or coder.words or coder.date or coder.channels)
        if plain and 1 < coder.width <= MOST_ELEMENTS:
            found += [f"{name}[{k}]" for k in range(coder.width)] + [name] * coder.gaps
        else:
            found += [name] * coder.columns
    return found


def summed_up(parts: Sequence[Shapley]) -> list[dict[str, Any]]:
    """Returns a `Contribution` for each column over all held-out examples, as JSON, the largest first."""
    told = []
    for name in dict.fromkeys(name for part in parts for name in part.columns):
        mine = [part for part in parts if name in part.columns]
        values = np.concatenate([part.values[:, part.columns.index(name)] for part in mine])
        direction = None
        if values.shape[1] == 1 and all(name in part.numbers for part in mine):
            direction = _direction(np.concatenate([part.numbers[name] for part in mine]), values[:, 0])
        told.append(Contribution(name, float(np.abs(values).sum(1).mean()), direction))
    return [asdict(one) for one in sorted(told, key=lambda one: -one.mean)]


def _direction(x: Floats, values: Floats) -> float | None:
    """The rank correlation of what is in a column with what it adds."""
    known = np.isfinite(x)
    if known.sum() < 3 or np.ptp(x[known]) == 0 or np.ptp(values[known]) == 0:
        return None
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(x[known]), rankdata(values[known]))[0, 1])


def reasons(part: Shapley, row: int, answered: int) -> list[dict[str, Any]]:
    """Returns the columns that moved one answer most; towards the class that was answered, or the number itself."""
    values = part.values[row]
    if values.shape[1] > 1:
        mine = values[:, answered]
    else:
        # of two classes the log-odds are told of the second
        mine = values[:, 0] if answered != 0 or part.unit == "the answered number" else -values[:, 0]
    order = np.argsort(-np.abs(mine), kind="stable")[:MOST_REASONS]
    return [{"column": part.columns[k], "by": float(mine[k])} for k in order.tolist() if mine[k] != 0]


def additive(decision: Callable[[Floats], Floats], x: Floats, background: Floats) -> Floats:
    """Shapley values of a model that is a sum of functions of one column each: φ_j = g_j(x_j) − mean of g_j.

    `decision` `(n, columns) → (n,)` or `(n, outputs)`. g_j is read off by changing one column of a fixed row.
    """
    both = np.concatenate([x, background])
    base = background[:1]
    found = []
    for j in range(x.shape[1]):
        changed = np.repeat(base, len(both), axis=0)
        changed[:, j] = both[:, j]
        moved = np.asarray(decision(changed), dtype=float).reshape(len(both), -1)
        found.append(moved[: len(x)] - moved[len(x) :].mean(0))
    return np.stack(found, axis=1)

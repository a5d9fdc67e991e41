"""Which inputs matter: how much worse a model answers when one column's values are dealt out anew among examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from easel.declare.program import DataType, role_of
from easel.match.examples import Object, Single

REPEATS = 5
MOST_ELEMENTS = 64
"""A vector of at most so many numbers is looked at number by number."""


@dataclass(frozen=True)
class Importance:
    """`drop` of the score without the column, and its deviation over the deals. At or below 0: not needed."""

    column: str
    drop: float
    deviation: float


@dataclass(frozen=True)
class InputPart:
    """A field of the input, or one number of a field that is a short vector."""

    name: str
    field: int
    element: int | None = None


def parts_of(data_type: DataType, one: Object) -> list[InputPart]:
    """What can be dealt out anew: the columns of a table, the numbers of a short vector. None of a series or a tree."""
    if not isinstance(one, Single):
        return []
    found: list[InputPart] = []
    for position, (name, value) in enumerate(zip(data_type.field_names, one.values, strict=True)):
        if role_of(data_type.fields[position]) == "group":
            continue
        vector = isinstance(value, np.ndarray) and value.ndim == 1 and 1 < value.size <= MOST_ELEMENTS
        if vector and isinstance(value, np.ndarray):
            found += [InputPart(f"{name}[{k}]", position, k) for k in range(value.size)]
        else:
            found.append(InputPart(name, position))
    return found if len(found) > 1 else []


def dealt(inputs: Sequence[Object], part: InputPart, order: Sequence[int]) -> list[Object]:
    """The inputs, each with another one's value in that place."""
    made: list[Object] = []
    for one, other in zip(inputs, order, strict=True):
        donor = inputs[other]
        assert isinstance(one, Single)
        assert isinstance(donor, Single)
        value = donor.values[part.field]
        own = one.values[part.field]
        if part.element is not None and isinstance(own, np.ndarray) and isinstance(value, np.ndarray):
            changed = own.copy()
            changed[part.element] = value[part.element]
            value = changed
        made.append(Single((*one.values[: part.field], value, *one.values[part.field + 1 :])))
    return made


def permutation_drops(
    parts: Sequence[InputPart],
    inputs: Sequence[Object],
    score: Callable[[Sequence[Object]], float],
    seed: int,
    in_time: Callable[[], bool] = lambda: True,
    repeats: int = REPEATS,
) -> Iterator[tuple[str, list[float]]]:
    """The drops of the score for each part, as long as there is time; every part gets the same deals."""
    whole = score(inputs)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(inputs)).tolist() for _ in range(repeats)]
    for part in parts:
        if not in_time():
            return
        yield part.name, [whole - score(dealt(inputs, part, order)) for order in orders]


def summed_up(drops: dict[str, list[float]]) -> list[Importance]:
    """Mean and deviation for each column, what matters most first."""
    found = [Importance(name, float(np.mean(d)), float(np.std(d))) for name, d in drops.items() if d]
    return sorted(found, key=lambda one: -one.drop)

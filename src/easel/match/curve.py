"""An example that is a series, as curves to be drawn: few points, with the extremes among them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType, Field, Number, Tensor
from easel.match.examples import Array, Chain, Object, Single

MOST_POINTS = 120
"""Of a line: the picture is small."""
MOST_LINES = 6
FEWEST_STEPS = 8
"""Of a vector: fewer numbers are read more easily than seen."""


@dataclass(frozen=True)
class CurveLine:
    """One quantity over the steps; None where a value is missing."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class ExampleCurve:
    """The lines of one example, all of the same length, which stand for `steps` of them."""

    steps: int
    lines: tuple[CurveLine, ...]


def is_series(data_type: DataType) -> bool:
    """Whether objects of this type are numbers in a row: a series with numbers in its steps, or one long vector."""
    if len(data_type.pointers) == 1:
        return any(_width(field) for field in data_type.fields)
    return not data_type.pointers and len(data_type.fields) == 1 and _is_long(data_type.fields[0])


def curve_of(data_type: DataType, one: Object) -> ExampleCurve:
    """Returns the curves of an object of a type that `is_series`."""
    if isinstance(one, Chain):
        found = [
            (name, np.asarray(column, dtype=np.float32).reshape(len(one), -1))
            for name, field, column in zip(data_type.field_names, data_type.fields, one.columns, strict=True)
            if _width(field)
        ]
    else:
        assert isinstance(one, Single)
        found = [("", np.asarray(one.values[0], dtype=np.float32).reshape(-1, 1))]
    if len(data_type.fields) == 1 and data_type.fields[0].name is None:
        found = [("", found[0][1])]
    named = [
        (f"{name} {k + 1}".strip() if table.shape[1] > 1 else name, table[:, k])
        for name, table in found
        for k in range(table.shape[1])
    ]
    lines = tuple(CurveLine(name, thinned(values)) for name, values in named[:MOST_LINES])
    return ExampleCurve(len(found[0][1]), lines)


def thinned(values: Array | NDArray[np.float64], most: int = MOST_POINTS) -> tuple[float | None, ...]:
    """Returns at most so many of the values, in order: of each stretch the lowest and the highest."""
    if len(values) > most:
        kept: list[int] = []
        for stretch in np.array_split(np.arange(len(values)), most // 2):
            some = values[stretch]
            if np.isnan(some).all():
                kept += [int(stretch[0]), int(stretch[-1])]
            else:
                kept += sorted((int(stretch[np.nanargmin(some)]), int(stretch[np.nanargmax(some)])))
        values = values[kept]
    return tuple(None if np.isnan(value) else float(f"{value:.6g}") for value in values)


def _width(field: Field) -> int:
    """How many numbers a step has in this field; 0 for what is no number."""
    match field:
        case Number(count):
            return count
        case Tensor((int(width),)):
            return width
    return 0


def _is_long(field: Field) -> bool:
    match field:
        case Number(count):
            return count >= FEWEST_STEPS
        case Tensor((int(length),)) | Tensor((int(length), 1)):
            return length >= FEWEST_STEPS
    return False

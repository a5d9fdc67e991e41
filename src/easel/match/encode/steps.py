"""The numeric part shared by series and trees: the fields of one step or node as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from easel.declare.program import Category, DataType, Number, Tensor
from easel.match.examples import Array, Value


@dataclass(frozen=True)
class StepCoder:
    """`vocabularies[k]` lists the values of the k-th field where it is a category, and is empty otherwise."""

    widths: tuple[int, ...]
    vocabularies: tuple[tuple[str, ...], ...]

    @property
    def width(self) -> int:
        return sum(self.widths)

    def column(self, k: int, values: Array | Iterable[Value]) -> Array:
        """`(T, widths[k])`: numbers as they are, categories as one-hot, an unknown value as zeros."""
        if isinstance(values, np.ndarray):
            return values.reshape(len(values), -1)
        listed = list(values)
        if not self.vocabularies[k]:
            rows = [np.full(self.widths[k], np.nan) if v is None else np.ravel(np.asarray(v)) for v in listed]
            return np.asarray(rows, dtype=np.float32).reshape(len(listed), self.widths[k])
        hot = np.zeros((len(listed), self.widths[k]), dtype=np.float32)
        place = {value: position for position, value in enumerate(self.vocabularies[k])}
        for row, value in enumerate(listed):
            if isinstance(value, str) and value in place:
                hot[row, place[value]] = 1.0
        return hot


def fit_steps(data_type: DataType, categories: list[set[str]]) -> StepCoder:
    """`categories[k]` are the values seen in the k-th field; values listed by the program come first."""
    widths: list[int] = []
    vocabularies: list[tuple[str, ...]] = []
    for field, seen in zip(data_type.fields, categories, strict=True):
        vocabulary: tuple[str, ...] = ()
        match field:
            case Tensor(shape):
                widths.append(int(np.prod([side or 1 for side in shape])))
            case Number(count):
                widths.append(count)
            case Category(values):
                vocabulary = values or tuple(sorted(seen)) or ("?",)
                widths.append(len(vocabulary))
            case _:
                raise ValueError(f"{field} cannot be part of a step")
        vocabularies.append(vocabulary)
    return StepCoder(tuple(widths), tuple(vocabularies))

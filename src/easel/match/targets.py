"""What is predicted, as arrays, and answers made of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, DataType, Number, Tensor
from easel.errors import InvalidInput
from easel.match.examples import Object, Single

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """A classification target: `names[k]` is class number k; `vector` says the program wrote `Tensor[D]`.

    Where a program asks for several answers, a class is a combination of them that occurred: `parts[k]` are its values.
    """

    names: tuple[str, ...]
    vector: bool = False
    parts: tuple[tuple[str, ...], ...] = ()

    def __call__(self, outputs: Sequence[Object]) -> NDArray[np.int64]:
        """`(n,)` class numbers; of a class vector the largest entry counts."""
        place = {name: number for number, name in enumerate(self.names)}
        numbers = []
        for one in outputs:
            assert isinstance(one, Single)
            value = one.values[0]
            numbers.append(int(np.argmax(value)) if isinstance(value, np.ndarray) else place[label_of(one)])
        return np.array(numbers, dtype=np.int64)


@dataclass(frozen=True)
class Values:
    """A regression target of `width` numbers, standardised for networks with `mean` and `deviation`."""

    width: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, outputs: Sequence[Object]) -> Floats:
        """`(n, width)` in the user's own unit."""
        return value_matrix(outputs)

    def scale(self, values: Floats) -> Floats:
        scaled: Floats = (values - np.asarray(self.mean)) / np.asarray(self.deviation)
        return scaled

    def unscale(self, values: NDArray[np.floating]) -> Floats:
        own: Floats = np.asarray(values, float) * np.asarray(self.deviation) + np.asarray(self.mean)
        return own


def value_matrix(outputs: Sequence[Object]) -> Floats:
    """`(n, width)`: all numeric fields side by side."""
    rows = []
    for one in outputs:
        assert isinstance(one, Single)
        rows.append(np.concatenate([np.ravel(np.asarray(value, dtype=float)) for value in one.values]))
    return np.stack(rows)


def label_of(output: Object) -> str:
    """The class of an output by name; of several answers all of them, with strokes between."""
    assert isinstance(output, Single)
    if len(output.values) == 1:
        return str(output.values[0])
    return " / ".join(str(value).replace("\\", "\\\\").replace(" / ", " \\/ ") for value in output.values)


def fit_classes(data_type: DataType, outputs: Sequence[Object]) -> Classes:
    """Class names: those of the program, the numbers of a class vector, or the sorted words seen; of several answers
    the combinations that occur.
    """
    if len(data_type.fields) > 1:
        found = {
            label_of(one): tuple(str(v) for v in one.values) for one in outputs if isinstance(one, Single)
        }
        names = tuple(sorted(found))
        return Classes(names, parts=tuple(found[name] for name in names))
    match data_type.fields[0]:
        case Tensor(shape):
            return Classes(tuple(str(k) for k in range(shape[0] or 0)), vector=True)
        case Category(values) if values:
            return Classes(values)
    seen = {str(one.values[0]) for one in outputs if isinstance(one, Single)}
    return Classes(tuple(sorted(seen)))


def fit_values(data_type: DataType, outputs: Sequence[Object]) -> Values:
    matrix = value_matrix(outputs)
    width = sum(f.count if isinstance(f, Number) else 1 for f in data_type.fields)
    if matrix.shape[1] != width:
        raise InvalidInput(f"expected {width} numbers to predict, found {matrix.shape[1]}")
    deviation = matrix.std(0)
    deviation[deviation < 1e-12] = 1.0
    return Values(width, tuple(matrix.mean(0).tolist()), tuple(deviation.tolist()))

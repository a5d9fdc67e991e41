"""Tables for networks: numbers on one scale without outliers, categories as numbers of an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType
from easel.match.encode.tables import TableEncoder, fit_table
from easel.match.examples import Object


@dataclass(frozen=True)
class TableTensorEncoder:
    """`centre` and `scale` of every number column; `sizes`: how many values each category column has, with one more
    for what is missing or new.
    """

    table: TableEncoder
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], ...]:
        """Returns for each field the words that it knows, where it is a category."""
        return self.table.vocabularies

    @property
    def numbers(self) -> int:
        return len(self.centre)

    def __call__(self, objects: Sequence[Object]) -> dict[str, NDArray[Any]]:
        """`{"x": (n, numbers)}`, and `"c": (n, categories)` where there are some; 0 is a missing or new value."""
        matrix = self.table(objects)
        mask = np.asarray(self.table.categorical, dtype=bool)
        scaled = (matrix[:, ~mask] - np.asarray(self.centre)) * np.asarray(self.scale)
        smooth = scaled / np.sqrt(1.0 + (scaled / 3.0) ** 2)
        found: dict[str, NDArray[Any]] = {"x": np.nan_to_num(smooth).astype(np.float32)}
        if mask.any():
            places = matrix[:, mask] + 1.0
            found["c"] = np.nan_to_num(places).astype(np.int64)
        return found


def fit_table_tensors(data_type: DataType, objects: Sequence[Object]) -> TableTensorEncoder:
    """Robust scales: the median, and the range of the middle half; of a column that hardly varies its whole range."""
    table = fit_table(data_type, objects)
    matrix = table(objects)
    mask = np.asarray(table.categorical, dtype=bool)
    numbers = matrix[:, ~mask]
    empty = np.isnan(numbers).all(0)
    numbers = np.where(empty, 0.0, numbers)
    low, centre, high = (
        np.nanquantile(numbers, (0.25, 0.5, 0.75), axis=0) if numbers.size else np.zeros((3, 0))
    )
    whole = np.nanmax(numbers, 0) - np.nanmin(numbers, 0) if numbers.size else np.zeros(0)
    width = np.where(high - low > 1e-12, high - low, whole / 2)
    scale = np.where(width > 1e-12, 1.0 / np.maximum(width, 1e-12), 0.0)
    sizes = tuple(len(coder.vocabulary) + 1 for coder in table.columns if coder.vocabulary)
    return TableTensorEncoder(table, tuple(centre.tolist()), tuple(scale.tolist()), sizes)

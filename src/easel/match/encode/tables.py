"""Tables → a matrix of numbers in which a category is its number and NaN says missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, DataType, Number, Tensor, Text
from easel.match.examples import Object, Single

Matrix = NDArray[np.float64]
WORD = re.compile(r"\w+")
MOST_WORDS = 200


@dataclass(frozen=True)
class ColumnCoder:
    """One field: `width` numbers, or the place in `vocabulary`, or how often each word of `words` occurs."""

    width: int
    vocabulary: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableEncoder:
    """`categorical` marks the output columns that hold category numbers."""

    columns: tuple[ColumnCoder, ...]

    @property
    def categorical(self) -> tuple[bool, ...]:
        return tuple(bool(c.vocabulary) for c in self.columns for _ in range(c.width))

    def __call__(self, objects: Sequence[Object]) -> Matrix:
        """`(n, Σ widths)`"""
        parts = [_encode(coder, [_value(one, k) for one in objects]) for k, coder in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)


def _value(one: Object, k: int) -> object:
    assert isinstance(one, Single)
    return one.values[k]


def _encode(coder: ColumnCoder, values: list[object]) -> Matrix:
    if coder.vocabulary:
        place = {value: float(position) for position, value in enumerate(coder.vocabulary)}
        return np.array(
            [[place.get(value, np.nan) if isinstance(value, str) else np.nan] for value in values]
        )
    if coder.words:
        counts = np.zeros((len(values), coder.width))
        place_of = {word: position for position, word in enumerate(coder.words)}
        for row, value in enumerate(values):
            for word in WORD.findall(str(value or "").lower()):
                if word in place_of:
                    counts[row, place_of[word]] += 1
        logged: Matrix = np.log1p(counts)
        return logged
    rows = [np.full(coder.width, np.nan) if v is None else np.ravel(np.asarray(v, float)) for v in values]
    return np.asarray(rows, dtype=np.float64).reshape(len(values), coder.width)


def fit_table(data_type: DataType, objects: Sequence[Object]) -> TableEncoder:
    coders = []
    for k, field in enumerate(data_type.fields):
        values = [_value(one, k) for one in objects]
        match field:
            case Tensor(shape):
                coders.append(ColumnCoder(int(np.prod([side or 1 for side in shape]))))
            case Number(count):
                coders.append(ColumnCoder(count))
            case Category(listed):
                vocabulary = listed or tuple(sorted({v for v in values if isinstance(v, str)})) or ("?",)
                coders.append(ColumnCoder(1, vocabulary=vocabulary))
            case Text():
                seen = Counter(word for v in values for word in set(WORD.findall(str(v or "").lower())))
                words = tuple(word for word, _ in seen.most_common(MOST_WORDS)) or ("?",)
                coders.append(ColumnCoder(len(words), words=words))
    return TableEncoder(tuple(coders))

"""Tables → a matrix of numbers in which a category is its number and NaN says missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, DataType, Date, Number, Tensor, Text, is_picture, role_of
from easel.match.encode.picture_columns import picture_columns, picture_width
from easel.match.examples import Object, Single

Matrix = NDArray[np.float64]
WORD = re.compile(r"\w+")
MOST_WORDS = 200
FEW_VALUES, MOST_VALUES = 32, 2_000
"""Of a category with more values than the first, how often one occurs is encoded too; beyond the second, none is."""


@dataclass(frozen=True)
class ColumnCoder:
    """One field: `width` numbers, or the place in `vocabulary` (and, for many values, how often each occurred), or how
    often each word of `words` occurs, or the parts of a date. `gaps`: one more number says whether it is missing.
    `channels`: it is a picture of so many.
    """

    width: int
    vocabulary: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    date: bool = False
    gaps: bool = False
    channels: int = 0

    @property
    def columns(self) -> int:
        return self.width + bool(self.counts) + self.gaps


@dataclass(frozen=True)
class TableEncoder:
    """`categorical` marks the output columns that hold category numbers."""

    columns: tuple[ColumnCoder, ...]

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], ...]:
        """Returns for each field the words that it knows, where it is a category."""
        return tuple(coder.vocabulary for coder in self.columns)

    @property
    def categorical(self) -> tuple[bool, ...]:
        return tuple(bool(c.vocabulary) and k == 0 for c in self.columns for k in range(c.columns))

    def __call__(self, objects: Sequence[Object]) -> Matrix:
        """`(n, Σ columns)`"""
        parts = [_encode(coder, [_value(one, k) for one in objects]) for k, coder in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)


def _value(one: Object, k: int) -> object:
    assert isinstance(one, Single)
    return one.values[k]


def _encode(coder: ColumnCoder, values: list[object]) -> Matrix:
    encoded = _encode_values(coder, values)
    if not coder.gaps:
        return encoded
    gaps = np.isnan(encoded).any(1, keepdims=True)
    return np.concatenate([encoded, gaps], axis=1)


def _encode_values(coder: ColumnCoder, values: list[object]) -> Matrix:
    if coder.width == 0:
        return np.empty((len(values), 0))
    if coder.vocabulary:
        place = {value: float(position) for position, value in enumerate(coder.vocabulary)}
        places = np.array(
            [[place.get(value, np.nan) if isinstance(value, str) else np.nan] for value in values]
        )
        if not coder.counts:
            return places
        often = dict(zip(coder.vocabulary, coder.counts, strict=True))
        seen = np.array([[often.get(value, 0) if isinstance(value, str) else 0] for value in values])
        return np.concatenate([places, np.log1p(seen)], axis=1)
    if coder.channels:
        pictures = [picture_columns(v if isinstance(v, np.ndarray) else None, coder.channels) for v in values]
        return np.stack(pictures) if pictures else np.empty((0, coder.width))
    if coder.words:
        counts = np.zeros((len(values), coder.width))
        place_of = {word: position for position, word in enumerate(coder.words)}
        for row, value in enumerate(values):
            for word in WORD.findall(str(value or "").lower()):
                if word in place_of:
                    counts[row, place_of[word]] += 1
        logged: Matrix = np.log1p(counts)
        return logged
    if coder.date:
        return date_parts(np.array([np.nan if v is None else v for v in values], dtype=np.float64))
    rows = [np.full(coder.width, np.nan) if v is None else np.ravel(np.asarray(v, float)) for v in values]
    return np.asarray(rows, dtype=np.float64).reshape(len(values), coder.width)


def date_parts(seconds: NDArray[np.float64]) -> Matrix:
    """`(n, 8)`: days since 1970, year, month, day, weekday, hour, and the season as a point on a circle."""
    known = np.isfinite(seconds)
    moments = np.where(known, seconds, 0.0).astype("datetime64[s]")
    days, months, years = (moments.astype(f"datetime64[{unit}]") for unit in "DMY")
    of_year = (days - years).astype(float)
    turn = 2 * np.pi * of_year / 365.25
    parts = np.stack(
        [
            days.astype(float),
            1970 + years.astype(float),
            1 + (months - years).astype(float),
            1 + (days - months).astype(float),
            (days.astype(int) + 3) % 7,
            (moments - days).astype(float) / 3600,
            np.sin(turn),
            np.cos(turn),
        ],
        axis=1,
    )
    found: Matrix = np.where(known[:, None], parts, np.nan)
    return found


DATE_PARTS = ("day", "year", "month", "day of month", "weekday", "hour", "season", "season")


def fit_table(data_type: DataType, objects: Sequence[Object]) -> TableEncoder:
    coders = []
    for k, field in enumerate(data_type.fields):
        values = [_value(one, k) for one in objects]
        if role_of(field) == "group":
            # Its values tell examples of the past apart, and say nothing about new ones.
            coders.append(ColumnCoder(0))
            continue
        match field:
            case Tensor(shape) if is_picture(field):
                channels = (shape[2] or 3) if len(shape) == 3 else 1
                coders.append(ColumnCoder(picture_width(channels), channels=channels))
            case Tensor(shape):
                coders.append(ColumnCoder(int(np.prod([side or 1 for side in shape]))))
            case Number(count):
                coders.append(ColumnCoder(count, gaps=_tells(values)))
            case Date():
                coders.append(ColumnCoder(len(DATE_PARTS), date=True, gaps=_tells(values)))
            case Category(listed):
                coders.append(_fit_category(listed, values))
            case Text():
                seen = Counter(word for v in values for word in set(WORD.findall(str(v or "").lower())))
                words = tuple(word for word, _ in seen.most_common(MOST_WORDS)) or ("?",)
                coders.append(ColumnCoder(len(words), words=words))
    return TableEncoder(tuple(coders))


def _fit_category(listed: tuple[str, ...], values: Sequence[object]) -> ColumnCoder:
    """Gives the most frequent of thousands of values a place each, and counts how often each occurs."""
    seen = Counter(v for v in values if isinstance(v, str))
    if listed or len(seen) <= FEW_VALUES:
        return ColumnCoder(1, vocabulary=listed or tuple(sorted(seen)) or ("?",))
    kept = tuple(sorted(value for value, _ in seen.most_common(MOST_VALUES)))
    return ColumnCoder(1, vocabulary=kept, counts=tuple(seen[value] for value in kept))


def _tells(values: Sequence[object]) -> bool:
    """Whether enough is missing, and enough there, for the gap itself to mean something."""
    gaps = sum(value is None for value in values)
    return 0.02 * len(values) <= gaps <= 0.98 * len(values) and gaps > 1

"""One example is one example: the same spelling for equal pairs, however they were fed.

Values are converted to the program's types before they are compared, so that a row of a CSV file, a line of JSON, a
row of Parquet and an object of the SDK are one, and `71` is `71.0`. A picture is named by its content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType, Program
from easel.match.examples import Chain, Example, Object, Single, Tree, Value
from easel.match.raw import Picture, spelled
from easel.match.read import field_parts, read_field, read_object

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
TELLING = 4
"""Inputs of fewer values than this are often equal by chance: they have no near-duplicates."""


def example_digest(program: Program, raw_input: Any, raw_output: Any) -> str:
    """The name of an opened pair for good. Raises where a part does not fit the program."""
    pair = [_side(program.input, raw_input, "input"), _side(program.output, raw_output, "output")]
    return _hash(pair)


def _hash(value: Any) -> str:
    return hashlib.blake2b(_ENCODER.encode(value).encode(), digest_size=16).hexdigest()


def _side(data_type: DataType, raw: Any, where: str) -> Any:
    """Pictures are not decoded: reading what was fed before costs hashing alone."""
    fields = data_type.fields
    if data_type.pointers:
        return _spell_object(read_object(data_type, raw, where))
    if isinstance(raw, Picture) and len(fields) == 1:
        return [spelled(raw)]
    parts = raw.values() if isinstance(raw, Mapping) else raw if isinstance(raw, list | tuple) else ()
    if len(fields) > 1 and any(isinstance(part, Picture) for part in parts):
        return [
            spelled(part) if isinstance(part, Picture) else _spell(read_field(field, part, f"{where}.{name}"))
            for field, name, part in zip(
                fields, data_type.field_names, field_parts(data_type, raw, where), strict=True
            )
        ]
    return _spell_object(read_object(data_type, raw, where))


def _spell_object(one: Object) -> Any:
    match one:
        case Single(values):
            return [_spell(value) for value in values]
        case Chain(columns):
            return {
                "chain": [
                    _spell(column) if isinstance(column, np.ndarray) else [_spell(v) for v in column]
                    for column in columns
                ]
            }
        case Tree():
            order = list(one.nodes())
            place = {id(node): number for number, node in enumerate(order)}
            return {
                "tree": [
                    [
                        [_spell(value) for value in node.values],
                        [None if child is None else place[id(child)] for child in node.children],
                    ]
                    for node in order
                ]
            }


def _spell(value: Value) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, dtype="<f4") + np.float32(0.0)
        return [list(array.shape), hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()]
    return number_word(value) if isinstance(value, float) else value


def number_word(value: float) -> str:
    """Alike for one number in single and in double precision; whole numbers exactly, whatever their size."""
    if value != value:
        return "nan"
    if value == int(value):
        return str(int(value))
    single = np.float32(value)
    return str(single) if float(single) == value else repr(value)


def near_key(example: Example) -> str | None:
    """A word that inputs share when they are nearly the same: numbers to three digits, words in small letters, a
    picture by its shades. None where the input has too little in it to tell.
    """
    parts = _rough(example.input)
    if isinstance(example.input, Single) and sum(_weight(value) for value in example.input.values) < TELLING:
        return None
    return _hash(parts)


def _weight(value: Value) -> int:
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value.split()) if isinstance(value, str) else 1


def _rough(one: Object) -> Any:
    match one:
        case Single(values):
            return [_rough_value(value) for value in values]
        case Chain(columns):
            return [
                _rough_value(c) if isinstance(c, np.ndarray) else [_rough_value(v) for v in c]
                for c in columns
            ]
        case Tree():
            return [[_rough_value(value) for value in node.values] for node in one.nodes()]


def _rough_value(value: Value) -> Any:
    if isinstance(value, np.ndarray):
        return _shades(value) if value.ndim == 3 else [f"{v:.3g}" for v in value.ravel().tolist()]
    if isinstance(value, str):
        return " ".join(value.lower().split())
    return value if value is None else f"{value:.3g}"


@lru_cache(64)
def _places(height: int, width: int) -> NDArray[Any]:
    rows = np.linspace(0, height - 1, 16).round().astype(int)
    columns = np.linspace(0, width - 1, 17).round().astype(int)
    found: NDArray[Any] = (rows[:, None] * width + columns[None, :]).ravel()
    return found


def _shades(picture: NDArray[Any]) -> str:
    """Whether each of 16 × 16 places is lighter than its neighbour to the right, as one number."""
    height, width, channels = picture.shape
    chosen = picture.reshape(-1, channels).take(_places(height, width), axis=0).astype(np.float32, copy=False)
    grey = (chosen[:, 0] if channels == 1 else chosen.mean(1)).reshape(16, 17)
    spread = float(np.maximum.reduce(grey, axis=None) - np.minimum.reduce(grey, axis=None)) or 1.0
    return np.packbits((grey[:, 1:] - grey[:, :-1]) > 0.02 * spread).tobytes().hex()

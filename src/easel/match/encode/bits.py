"""Any object → a row of bits and back: what the general templates learn on.

Fields are written in order: a number as 16 bits over its fitted range, a category as 16 bits of its place, a
text as its first 64 bytes; then for each pointer one bit, and the next object if it is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, DataType, Field, Number, Tensor, Text
from easel.match.examples import Array, Chain, Object, Single, Tree, Value

Bits = NDArray[np.uint8]
LONGEST = 8_192
TEXT_BYTES = 64
_TOP = 2**16 - 1


@dataclass(frozen=True)
class FieldBits:
    """A field's range (numbers) or values (categories), and how many numbers it holds."""

    width: int
    low: float = 0.0
    high: float = 1.0
    vocabulary: tuple[str, ...] = ()
    text: bool = False

    @property
    def bits(self) -> int:
        return 8 * TEXT_BYTES if self.text else 16 * self.width


@dataclass(frozen=True)
class BitEncoder:
    """Rows of `length` bits, padded with zeros or cut."""

    fields: tuple[FieldBits, ...]
    shapes: tuple[tuple[int | None, ...], ...]
    pointers: int
    length: int

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], ...]:
        """Returns for each field the words that it knows, where it is a category."""
        return tuple(field.vocabulary for field in self.fields)

    def __call__(self, objects: Sequence[Object]) -> dict[str, NDArray[np.float32]]:
        """`{"x": (n, length)}` of zeros and ones."""
        rows = np.zeros((len(objects), self.length), dtype=np.float32)
        for row, one in enumerate(objects):
            bits = np.concatenate(list(self._write(one)))[: self.length]
            rows[row, : len(bits)] = bits
        return {"x": rows}

    def _write(self, one: Object) -> Iterator[Bits]:
        one_bit, no_bit = np.ones(1, np.uint8), np.zeros(1, np.uint8)
        match one:
            case Single(values):
                yield from self._write_values(values)
            case Chain(columns):
                for step in range(len(one)):
                    yield from self._write_values(tuple(column[step] for column in columns))
                    yield one_bit if step + 1 < len(one) else no_bit
            case Tree():
                waiting: list[Tree] = [one]
                while waiting:
                    node = waiting.pop()
                    yield from self._write_values(node.values)
                    for child in node.children:
                        yield no_bit if child is None else one_bit
                    waiting.extend(child for child in reversed(node.children) if child is not None)

    def _write_values(self, values: Sequence[Value]) -> Iterator[Bits]:
        for field, value in zip(self.fields, values, strict=True):
            if field.text:
                data = np.frombuffer(
                    str(value or "").encode()[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0"), np.uint8
                )
                yield np.unpackbits(data)
                continue
            if field.vocabulary:
                known = isinstance(value, str) and value in field.vocabulary
                whole = np.array([field.vocabulary.index(str(value)) if known else _TOP])
            else:
                numbers = np.ravel(np.nan_to_num(np.asarray(0.0 if value is None else value, float)))
                unit = (np.resize(numbers, field.width) - field.low) / max(field.high - field.low, 1e-12)
                whole = np.clip(unit, 0, 1) * _TOP
            yield np.unpackbits(whole.round().astype(">u2").view(np.uint8))

    def decode(self, row: NDArray[np.floating]) -> Single:
        """Bits (or their probabilities) of an object without pointers → its values."""
        bits = (np.asarray(row) > 0.5).astype(np.uint8)
        values: list[Value] = []
        start = 0
        for field, shape in zip(self.fields, self.shapes, strict=True):
            data = np.packbits(np.resize(bits[start : start + field.bits], field.bits))
            start += field.bits
            if field.text:
                values.append(data.tobytes().rstrip(b"\0").decode(errors="replace"))
                continue
            whole = data.view(">u2").astype(np.float64)
            if field.vocabulary:
                values.append(field.vocabulary[min(int(whole[0]), len(field.vocabulary) - 1)])
                continue
            numbers = (field.low + whole / _TOP * (field.high - field.low)).astype(np.float32)
            known = None not in shape and bool(shape)
            values.append(numbers.reshape([s or 1 for s in shape]) if known else float(numbers[0]))
        return Single(tuple(values))


def _flat(one: Object, k: int) -> Sequence[Value] | Array:
    match one:
        case Single(values):
            return (values[k],)
        case Chain(columns):
            return columns[k]
        case Tree():
            return tuple(node.values[k] for node in one.nodes())


def fit_bits(data_type: DataType, objects: Sequence[Object]) -> BitEncoder:
    coded = [
        _fit_field(field, [v for o in objects for v in _flat(o, k)])
        for k, field in enumerate(data_type.fields)
    ]
    shapes = tuple(
        f.shape if isinstance(f, Tensor) else (f.count,) if isinstance(f, Number) and f.count > 1 else ()
        for f in data_type.fields
    )
    short = BitEncoder(tuple(coded), shapes, len(data_type.pointers), LONGEST)
    longest = max(sum(len(part) for part in short._write(one)) for one in objects)
    return BitEncoder(tuple(coded), shapes, len(data_type.pointers), min(LONGEST, -(-longest // 32) * 32))


def _fit_field(field: Field, values: list[Value]) -> FieldBits:
    match field:
        case Text():
            return FieldBits(1, text=True)
        case Category(listed):
            return FieldBits(
                1, vocabulary=listed or tuple(sorted({v for v in values if isinstance(v, str)})) or ("?",)
            )
    numbers = [np.ravel(np.asarray(v, dtype=float)) for v in values if v is not None] or [np.zeros(1)]
    flat = np.concatenate(numbers)
    flat = flat[np.isfinite(flat)] if np.isfinite(flat).any() else np.zeros(1)
    if isinstance(field, Tensor):
        width = max(len(n) for n in numbers)
    else:
        width = field.count if isinstance(field, Number) else 1
    return FieldBits(width, float(flat.min()), float(flat.max()))

"""Check one raw example against its program, and say what is wrong so that a biologist understands it.

Raw values are what JSON, CSV readers and NumPy give: numbers, strings, lists, arrays, mappings. One field may
stand for itself; several come as a mapping by name or a list in order. A chain is a list of steps, an array
`(T, …)`, or nested objects `{…, "next": {…}}`; a tree is nested objects.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.declare.cells import is_missing, read_moment, read_number, seconds_of
from easel.declare.example_file import given_name
from easel.declare.program import Category, DataType, Date, Field, Number, Program, Tensor, Text
from easel.match.examples import Array, Chain, Example, ExampleError, Object, Single, Tree, Value
from easel.match.pictures import SizePolicy, decode_picture
from easel.match.raw import Picture

LARGEST_NUMBER = 1e38
"""What models, which reckon in single precision, can still tell from infinity."""
LONGEST_WORD = 1_000
MAX_STEPS = 1_000_000
MAX_NODES = 100_000
MAX_TEXT = 1_000_000


def read_example(program: Program, raw_input: Any, raw_output: Any) -> Example:
    """A pair as typed records, or an `ExampleError`."""
    return Example(
        read_object(program.input, raw_input, "input"),
        read_object(program.output, raw_output, "output"),
    )


def read_object(data_type: DataType, raw: Any, where: str) -> Object:
    """One object of `data_type`."""
    if not data_type.pointers:
        return Single(_read_values(data_type, raw, where))
    if len(data_type.pointers) == 1:
        return _read_chain(data_type, raw, where)
    return _read_tree(data_type, raw, where)


def read_asked(data_type: DataType, raw: Any, where: str) -> tuple[Object, list[str]]:
    """An object that is asked about, and a note for each value that is missing or that no class of the program has: the
    model answers as if it were unknown. What cannot be meant is refused as it is among examples.
    """
    if data_type.pointers:
        return read_object(data_type, raw, where), []
    names, fields = data_type.field_names, data_type.fields
    if not isinstance(raw, Mapping) or not set(raw) & set(names):
        return read_object(data_type, raw, where), []
    notes = [f'{where}: the program has no "{key}", which is left out' for key in raw if key not in names]
    values: list[Value] = []
    for field, name in zip(fields, names, strict=True):
        part, here = raw.get(name), f"{where}.{name}"
        if not isinstance(field, Tensor) and not field.optional and _unknown(field, part):
            notes.append(
                f"{here} is {'missing' if _blank(part) else f'new ({_shown(part)})'}: answered without it"
            )
            values.append(_empty(field))
        else:
            if not isinstance(field, Tensor) and _gap(field, part):
                notes.append(f"{here} is missing: answered without it")
            values.append(read_field(field, part, here))
    return Single(tuple(values)), notes


def _gap(field: Number | Category | Text | Date, raw: Any) -> bool:
    """Whether a field that may be missing is."""
    listed = isinstance(field, Category) and _listed(field.values, raw)
    return field.optional and _blank(raw) and not listed


def _empty(field: Field) -> Value:
    if isinstance(field, Number) and field.count > 1:
        return np.full(field.count, np.nan, np.float32)
    return "" if isinstance(field, Text) else None


def _unknown(field: Field, raw: Any) -> bool:
    if isinstance(field, Category) and field.values and isinstance(raw, str | int | float):
        known = _listed(field.values, raw)
        return not known and (_blank(raw) or _close_to_none(field.values, raw))
    return _blank(raw) if not isinstance(field, Text) else raw is None


def _listed(values: tuple[str, ...], raw: Any) -> bool:
    """Whether the program lists this very word: then it is a value, though others write it for a gap."""
    return raw is not None and str(raw).strip() in values


def _close_to_none(values: tuple[str, ...], raw: Any) -> bool:
    """A word that is not just another spelling of a value: `1.0` is 1."""
    whole = isinstance(raw, float) and raw.is_integer() and str(int(raw)) in values
    return not whole


def _read_values(data_type: DataType, raw: Any, where: str, *, loose: bool = False) -> tuple[Value, ...]:
    """The fields of one object; `loose` admits further keys (the pointers, read elsewhere)."""
    names, fields = data_type.field_names, data_type.fields
    parts = field_parts(data_type, raw, where, loose=loose)
    return tuple(
        read_field(field, part, f"{where}.{name}" if len(fields) > 1 else where)
        for field, part, name in zip(fields, parts, names, strict=True)
    )


def field_parts(data_type: DataType, raw: Any, where: str, *, loose: bool = False) -> list[Any]:
    """The raw value of every field, of an object by name or in order."""
    names, fields = data_type.field_names, data_type.fields
    if isinstance(raw, Mapping):
        known = set(names) | (set(data_type.pointers) if loose else set())
        unknown = [key for key in raw if key not in known]
        if unknown:
            close = difflib.get_close_matches(str(unknown[0]), names, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else f"; the fields are {', '.join(names)[:200]}"
            raise ExampleError(f'{where}: there is no field "{unknown[0]}"{hint}')
        return [raw.get(name) for name in names]
    if len(fields) == 1:
        return [raw]
    if isinstance(raw, list | tuple | np.ndarray) and len(raw) == len(fields):
        return list(raw)
    raise ExampleError(
        f"{where}: expected {len(fields)} values ({', '.join(names)[:200]}), found {_shown(raw)}"
    )


def read_field(field: Field, raw: Any, where: str) -> Value:
    """One field of an object, in the program's type."""
    match field:
        case Tensor(shape):
            return _read_tensor(shape, raw, where)
        case Number(count):
            if _blank(raw):
                if not field.optional:
                    raise _missing(where, "number", "Number")
                return None if count == 1 else np.full(count, np.nan, np.float32)
            if count > 1:
                return _read_tensor((count,), raw, where)
            return _read_number(raw, where)
        case Date():
            if _blank(raw):
                if not field.optional:
                    raise _missing(where, "date", "Date")
                return None
            return _read_date(raw, where)
        case Category(values):
            if _blank(raw) and not _listed(values, raw):
                if not field.optional:
                    raise _missing(where, "category", "Category")
                return None
            return _read_category(values, raw, where)
        case Text():
            if raw is None and field.optional:
                return ""
            if not isinstance(raw, str):
                raise ExampleError(f"{where}: expected text, found {_shown(raw)}")
            _check_characters(raw, where)
            if len(raw) > MAX_TEXT:
                raise ExampleError(f"{where}: the text is longer than {MAX_TEXT:,} characters")
            return raw


def _missing(where: str, what: str, word: str) -> ExampleError:
    if where.partition(".")[0] == "output":
        return ExampleError(f"{where}: the answer is missing, so there is nothing to learn from it")
    return ExampleError(f"{where}: the {what} is missing; write {word}? if it may be")


def _blank(raw: Any) -> bool:
    if raw is None or (isinstance(raw, str) and is_missing(raw)):
        return True
    return isinstance(raw, float) and math.isnan(raw)


def _read_number(raw: Any, where: str) -> float:
    try:
        number = float(raw.item() if isinstance(raw, np.ndarray) and raw.size == 1 else raw)
    except (TypeError, ValueError):
        spelled = read_number(raw) if isinstance(raw, str) else None
        if spelled is None:
            raise ExampleError(f"{where}: expected a number, found {_shown(raw)}") from None
        number = spelled
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST_NUMBER:
        raise ExampleError(
            f"{where}: {number:g} is not a usable number; it may be at most {LARGEST_NUMBER:g}"
        )
    return number


def _read_date(raw: Any, where: str) -> float:
    """Seconds since 1970, of a written date, a datetime, or such a number itself."""
    if isinstance(raw, datetime):
        return seconds_of(raw)
    if isinstance(raw, date):
        return seconds_of(datetime(raw.year, raw.month, raw.day))  # noqa: DTZ001
    if isinstance(raw, str):
        moment = read_moment(raw)
        if moment is None:
            raise ExampleError(
                f"{where}: expected a date such as 2026-11-16 or 16.11.2026 18:30, found {_shown(raw)}"
            )
        return moment
    return _read_number(raw, where)


def _check_characters(text: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ExampleError(
            f"{where}: it holds half a character (a lone surrogate), which no text may"
        ) from None


def _read_category(values: tuple[str, ...], raw: Any, where: str) -> str:
    if isinstance(raw, Mapping | list | tuple | np.ndarray | bytes):
        raise ExampleError(f"{where}: expected one word, found {_shown(raw)}")
    if isinstance(raw, float | np.floating) and float(raw).is_integer() and str(raw) not in values:
        raw = int(raw)
    word = str(raw).strip()
    _check_characters(word, where)
    if "\0" in word or len(word) > LONGEST_WORD:
        what = "a NUL character" if "\0" in word else f"more than {LONGEST_WORD} characters"
        raise ExampleError(f"{where}: a category of {what}; if it is text, write Text in the program")
    if values and word not in values:
        close = difflib.get_close_matches(word, values, n=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        listed = ", ".join(values[:12]) + (", …" if len(values) > 12 else "")
        raise ExampleError(f'{where}: "{word[:60]}" is none of the classes {listed}{hint}')
    return word


def _read_tensor(shape: tuple[int | None, ...], raw: Any, where: str) -> Array:
    wanted = " × ".join("any" if side is None else str(side) for side in shape)
    if isinstance(raw, Picture):
        try:
            return decode_picture(raw.data, Tensor(shape), SizePolicy(raw.fit))
        except ExampleError as error:
            named = given_name(raw.path) if raw.path else "picture"
            raise ExampleError(f"{where}: {named}: {error.message}") from None
    if len(shape) == 1 and shape[0] is not None and shape[0] > 1 and isinstance(raw, int | np.integer):
        # A class vector may be given as the number of its class.
        if not 0 <= raw < shape[0]:
            raise ExampleError(f"{where}: class {raw} does not exist; classes are 0 to {shape[0] - 1}")
        one_hot = np.zeros(shape[0], dtype=np.float32)
        one_hot[int(raw)] = 1.0
        return one_hot
    try:
        array = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise ExampleError(f"{where}: expected {wanted} numbers, found {_shown(raw)}") from None
    if array.ndim == 0 and shape == (1,):
        array = array[None]
    if array.ndim == len(shape) - 1 and shape[-1] == 1:
        array = array[..., None]
    fits = array.ndim == len(shape) and all(
        w is None or w == s for w, s in zip(shape, array.shape, strict=True)
    )
    if not fits or array.size == 0:
        found = " × ".join(map(str, array.shape)) or "a single number"
        raise ExampleError(f"{where}: expected {wanted} numbers, found {found}")
    bad = int(array.size - np.isfinite(array).sum())
    if bad:
        raise ExampleError(f"{where}: {bad} of {array.size} numbers are NaN or infinite; fill or drop them")
    return array


def _read_chain(data_type: DataType, raw: Any, where: str) -> Chain:
    pointer = data_type.pointers[0]
    if isinstance(raw, Mapping):
        steps: list[Any] | tuple[Any, ...] | NDArray[Any] = _unlink(raw, pointer, where)
    elif isinstance(raw, np.ndarray | list | tuple):
        steps = raw
    else:
        raise ExampleError(f"{where}: expected a series, a list of steps, found {_shown(raw)}")
    if len(steps) == 0:
        raise ExampleError(f"{where}: the series is empty")
    if len(steps) > MAX_STEPS:
        raise ExampleError(f"{where}: the series has more than {MAX_STEPS:,} steps")
    whole = _read_whole_series(data_type, steps, where)
    if whole is not None:
        return whole
    rows = [
        _read_values(data_type, step, f"{where}, step {number}", loose=True)
        for number, step in enumerate(steps, start=1)
    ]
    return Chain(tuple(_column(f, [row[k] for row in rows]) for k, f in enumerate(data_type.fields)))


def _read_whole_series(data_type: DataType, steps: Any, where: str) -> Chain | None:
    """The quick way for the usual series: one numeric field, all steps at once."""
    if len(data_type.fields) != 1 or isinstance(steps[0], Mapping):
        return None
    match data_type.fields[0]:
        case Tensor(shape) if None not in shape:
            pass
        case Number(count, _, False):
            shape = (count,)
        case _:
            return None
    try:
        array = np.asarray(steps, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return None
    if array.ndim == len(shape) and shape[-1] == 1:
        array = array[..., None]
    if array.ndim != len(shape) + 1:
        return None
    return Chain((_read_tensor((None, *shape), array, where),))


def _column(field: Field, values: list[Value]) -> Array | tuple[Value, ...]:
    if isinstance(field, Number) and field.count == 1:
        return np.array([[np.nan if v is None else v] for v in values], dtype=np.float32)
    if isinstance(field, Tensor | Number) and not (isinstance(field, Tensor) and None in field.shape):
        return np.stack([np.asarray(v, dtype=np.float32) for v in values])
    return tuple(values)


def _unlink(raw: Mapping[str, Any], pointer: str, where: str) -> list[Mapping[str, Any]]:
    steps: list[Mapping[str, Any]] = []
    seen: set[int] = set()
    here: Any = raw
    while here is not None:
        if not isinstance(here, Mapping):
            raise ExampleError(f'{where}: "{pointer}" must be the next object or nothing, not {_shown(here)}')
        if id(here) in seen:
            raise ExampleError(f'{where}: following "{pointer}" runs in a circle; a series must end')
        seen.add(id(here))
        steps.append(here)
        if len(steps) > MAX_STEPS:
            raise ExampleError(f"{where}: the series has more than {MAX_STEPS:,} steps")
        here = here.get(pointer)
    return steps


def _read_tree(data_type: DataType, raw: Any, where: str) -> Tree:
    """Reads a tree without recursion, so that a deep one is no danger: parents are listed first, leaves built first."""
    order: list[Mapping[str, Any]] = []
    links: list[tuple[int | None, ...]] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, int, int]] = [(raw, -1, 0)]
    while waiting:
        node, parent, slot = waiting.pop()
        if not isinstance(node, Mapping):
            raise ExampleError(f"{where}: a tree is made of nested objects; found {_shown(node)}")
        if id(node) in seen:
            raise ExampleError(f"{where}: the same object is in the tree twice; a tree has no circles")
        seen.add(id(node))
        number = len(order)
        if number >= MAX_NODES:
            raise ExampleError(f"{where}: the tree has more than {MAX_NODES:,} nodes")
        order.append(node)
        links.append((None,) * len(data_type.pointers))
        if parent >= 0:
            links[parent] = tuple(number if k == slot else link for k, link in enumerate(links[parent]))
        for k, pointer in enumerate(data_type.pointers):
            if node.get(pointer) is not None:
                waiting.append((node[pointer], number, k))
    built: dict[int, Tree] = {}
    for number in range(len(order) - 1, -1, -1):
        values = _read_values(data_type, order[number], where, loose=True)
        built[number] = Tree(values, tuple(None if link is None else built[link] for link in links[number]))
    return built[0]


def _shown(raw: Any) -> str:
    if isinstance(raw, Picture):
        return "a picture"
    if isinstance(raw, np.ndarray):
        return f"an array of {' × '.join(map(str, raw.shape))} {raw.dtype}"
    if isinstance(raw, Mapping):
        return f"an object with {', '.join(map(str, raw))[:80] or 'nothing in it'}"
    if isinstance(raw, list | tuple):
        return f"a list of {len(raw)}"
    if raw is None:
        return "nothing"
    return repr(raw)[:60]

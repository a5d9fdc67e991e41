"""Rows of a table → pairs for a program: which column is which. Pure: no files are opened here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from easel.declare.cells import read_number
from easel.declare.program import DataType, Date, Number, Program, Tensor
from easel.declare.propose import TARGET_NAMES
from easel.declare.styles import StyleBook, StyledColumns
from easel.errors import InvalidInput


@dataclass(frozen=True)
class Layout:
    """Names of the columns that hold the input and the output.

    `flat` says that the input's columns are the numbers of one tensor, `series` that they are the steps of a
    series, blanks at its end left out.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    flat: bool = False
    series: bool = False

    def input_of(self, row: Mapping[str, Any]) -> Any:
        values = [row.get(name) for name in self.inputs]
        if not (self.flat or self.series):
            return dict(zip(self.inputs, values, strict=True))
        while self.series and values and _blank(values[-1]):
            values.pop()
        return [_number(value) for value in values]

    def output_of(self, row: Mapping[str, Any]) -> Any:
        if len(self.outputs) == 1:
            return row.get(self.outputs[0])
        return {name: row.get(name) for name in self.outputs}


def lay_out(program: Program, header: Sequence[str], *, answers: bool = True) -> Layout:
    """Lays columns out by name; where the program names none, a telling name or the last column is the output.

    Without `answers` there need be no output column.
    """
    names, goal = program.input.field_names, program.output.field_names
    outputs: tuple[str, ...] = ()
    if all(name in header for name in goal):
        outputs = goal
    elif len(goal) == 1 and program.output.fields[0].name is None:
        telling = [name for name in header if name.strip().lower() in TARGET_NAMES]
        outputs = (telling[0],) if telling else (header[-1],) if answers and header else ()
    elif answers:
        raise InvalidInput(f"there is no column {_absent(goal, header)!r}: it is what the program predicts")
    if all(name in header for name in names):
        return Layout(names, outputs)
    rest = tuple(name for name in header if name not in outputs)
    width = _flat_width(program.input)
    if width is not None and not program.input.pointers and len(rest) == width:
        return Layout(rest, outputs, flat=True)
    if width == 1 and len(program.input.pointers) == 1:
        return Layout(rest, outputs, series=True)
    raise InvalidInput(
        f"there is no column {_absent(names, header)!r}; the columns are {', '.join(header)[:200]}"
    )


def pairs_of_rows(
    program: Program,
    header: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    book: StyleBook | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Pairs, read as `book` knows the app's columns to be written."""
    layout = lay_out(program, header)
    for row in (book or StyleBook()).plain(_styled(program, layout), rows):
        yield layout.input_of(row), layout.output_of(row)


def objects_of_rows(
    program: Program,
    header: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    book: StyleBook | None = None,
) -> Iterator[Any]:
    """Objects to be asked about, read as `book` knows the app's columns to be written."""
    layout = lay_out(program, header, answers=False)
    for row in (book or StyleBook()).plain(_styled(program, replace(layout, outputs=())), rows):
        yield layout.input_of(row)


def _styled(program: Program, layout: Layout) -> list[StyledColumns]:
    """The columns that hold numbers or dates, by the field they belong to."""
    found = []
    for side, data_type, names in (
        ("input", program.input, layout.inputs),
        ("output", program.output, layout.outputs),
    ):
        keys = [f"{side}.{name}" for name in data_type.field_names]
        if side == "input" and (layout.flat or layout.series):
            found.append(StyledColumns(data_type.fields[0], keys[0], names))
        elif len(names) == len(keys):
            found += [
                StyledColumns(field, key, (name,))
                for field, key, name in zip(data_type.fields, keys, names, strict=True)
                if isinstance(field, Date) or (isinstance(field, Number) and field.count == 1)
            ]
    return found


def _flat_width(data_type: DataType) -> int | None:
    """How many numbers one step or object has, where it is a single unnamed vector."""
    if len(data_type.fields) != 1:
        return None
    match data_type.fields[0]:
        case Tensor((int(side),)):
            return side
        case Number(count):
            return count
        case Tensor((int(height), int(width), 1)) | Tensor((int(height), int(width))):
            return height * width
    return None


def _absent(wanted: Sequence[str], header: Sequence[str]) -> str:
    return next(name for name in wanted if name not in header)


def _blank(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _number(value: Any) -> Any:
    """A cell of a CSV file as the number it spells; the check of the example complains about others."""
    try:
        return float(value)
    except (TypeError, ValueError):
        spelled = read_number(value) if isinstance(value, str) else None
        return value if spelled is None else spelled

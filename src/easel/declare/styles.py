"""How an app's examples write numbers and dates: decided by the first that tell, and kept for all that come later.

`1,250` and `03/04/2026` mean nothing by themselves. A column of the first feed tells which of two meanings they have,
and the app remembers it, so that a later file and a single question are read like the first examples were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias

from easel.declare.cells import (
    NumberStyle,
    day_order,
    decimal_proven,
    moment_forms,
    read_moment,
    read_number,
    style_of,
)
from easel.declare.program import DataType, Date, Field, Number, Program
from easel.errors import InvalidInput

LOOKED_AT = 5_000
"""Rows that tell how a table writes its numbers and dates."""
_MARKS = {",": "commas", ".": "points"}
_ORDERS = {"dmy": "day first", "mdy": "month first"}


@dataclass(frozen=True)
class ColumnStyle:
    """The `decimal` mark of a column's numbers and the `unit` behind them; the `order` of day and month in its dates.
    What nothing has told yet is empty.
    """

    decimal: str = ""
    unit: str = ""
    order: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in ("", ".", ",") or self.order not in ("", *_ORDERS) or len(self.unit) > 12:
            raise ValueError("decimal is a point or a comma, order is dmy or mdy, and a unit has 12 letters")


Styles: TypeAlias = Mapping[str, ColumnStyle]
"""By `input.NAME` or `output.NAME` of a field."""


@dataclass(frozen=True)
class StyledColumns:
    """The columns of a table that hold one field, more than one where it is a vector or a series.

    `key`: `input.NAME` or `output.NAME`.
    """

    field: Field
    key: str
    names: tuple[str, ...]


def styles_json(styles: Styles) -> dict[str, dict[str, str]]:
    return {name: {k: v for k, v in asdict(style).items() if v} for name, style in styles.items()}


def read_styles(told: Mapping[str, Mapping[str, str]] | None) -> dict[str, ColumnStyle]:
    return {name: ColumnStyle(**style) for name, style in (told or {}).items()}


def of_columns(program: Program, styles: Styles) -> dict[str, ColumnStyle]:
    """Returns the styles of columns that the program has: of others there is nothing to remember."""
    sides = (("input", program.input), ("output", program.output))
    there = {f"{side}.{name}" for side, one in sides for name in one.field_names}
    return {name: style for name, style in styles.items() if name in there}


def joined(first: Styles, then: Styles) -> dict[str, ColumnStyle]:
    """What `first` tells of each column, and what only `then` tells."""
    return {**then, **{name: _joined(style, then.get(name, style)) for name, style in first.items()}}


def _joined(first: ColumnStyle, then: ColumnStyle) -> ColumnStyle:
    return ColumnStyle(first.decimal or then.decimal, first.unit or then.unit, first.order or then.order)


class StyleBook:
    """Reads tables by what is `known` of their columns, and by what each tells itself where nothing is.

    `found` is what the tables told, `notes` where they contradict what was known.
    """

    def __init__(self, known: Styles | None = None) -> None:
        self._known = dict(known or {})
        self.found: dict[str, ColumnStyle] = {}
        self.notes: list[str] = []

    def plain(
        self, columns: Sequence[StyledColumns], rows: Iterable[Mapping[str, Any]]
    ) -> Iterator[Mapping[str, Any]]:
        """Rows whose numbers and dates are written as everywhere: points for decimals, ISO order for dates.

        A cell that does not fit stays as it is, for the check to complain about.
        """
        waiting = iter(rows)
        first = list(islice(waiting, LOOKED_AT))
        readers: list[tuple[str, Callable[[str], float | None]]] = []
        for one in columns:
            cells = [row[name] for name in one.names for row in first if isinstance(row.get(name), str)]
            read = self._reader(one, cells)
            if read is not None:
                readers += [(name, read) for name in one.names]
        for row in chain(first, waiting):
            yield {**row, **_read_all(row, readers)} if readers else row

    @property
    def known(self) -> Styles:
        return self._known

    def look(self, data_type: DataType, side: str, objects: Sequence[Any]) -> None:
        """Take note of how words of objects, by name or in order, write numbers and dates of which nothing is known."""
        for k, (name, field) in enumerate(zip(data_type.field_names, data_type.fields, strict=True)):
            if _is_styled(field) and f"{side}.{name}" not in self._known:
                parts = (_part(data_type, one, k, name) for one in objects[:LOOKED_AT])
                cells = [part for part in parts if isinstance(part, str)]
                if cells:
                    self._reader(StyledColumns(field, f"{side}.{name}", (name,)), cells)

    def _reader(self, one: StyledColumns, cells: Sequence[str]) -> Callable[[str], float | None] | None:
        known = self._known.get(one.key, ColumnStyle())
        if isinstance(one.field, Date):
            style, form = self._of_dates(one.key, known, cells)
            self._keep(one.key, known, style)
            if form == "iso":
                return None
            return partial(read_moment, form=form) if form else _moment_reader(style.order)
        number = self._of_numbers(one.key, known, cells)
        if number is None:
            return _number_reader(known)
        self._keep(one.key, known, number)
        return _number_reader(number)

    def _keep(self, key: str, known: ColumnStyle, style: ColumnStyle) -> None:
        told = _joined(known, style)
        if told != known:
            self.found[key] = self._known[key] = told

    def _of_dates(self, key: str, known: ColumnStyle, cells: Sequence[str]) -> tuple[ColumnStyle, str]:
        forms = moment_forms(cells)
        if not forms:
            return known, ""
        agreeing = [form for form in forms if day_order(form) in ("", known.order)]
        form = agreeing[0] if agreeing else forms[0]
        order = day_order(form)
        if known.order and order not in ("", known.order):
            self.notes.append(
                f'"{_name(key)}": these dates are written {_ORDERS[order]}, earlier ones {_ORDERS[known.order]}: '
                "each is read as it is written; see whether the earlier ones were meant so"
            )
        return ColumnStyle(order=order), form

    def _of_numbers(self, key: str, known: ColumnStyle, cells: Sequence[str]) -> ColumnStyle | None:
        """How these cells are to be read; nothing where they are no numbers of one style."""
        found = style_of(cells)
        if found is None:
            return None
        marked = found.unit or any("," in cell or "." in cell for cell in cells)
        unit, decimal = found.unit, found.decimal if marked else ""
        if known.unit and unit and unit != known.unit:
            raise InvalidInput(
                f'"{_name(key)}" was fed in {known.unit}, and these are in {unit}: write all of them in {known.unit}'
            )
        proven = decimal_proven(cells)
        if known.decimal and proven and proven != known.decimal:
            self.notes.append(
                f'"{_name(key)}": these numbers have decimal {_MARKS[proven]}, earlier ones had '
                f"{_MARKS[known.decimal]}: each is read as it is written"
            )
        elif known.decimal:
            decimal = known.decimal
        if unit and not known.unit and known.decimal:
            self.notes.append(
                f'"{_name(key)}": these numbers are in {unit}; earlier ones were written without a unit'
            )
        return ColumnStyle(decimal, unit or known.unit)


def _name(key: str) -> str:
    return key.partition(".")[2]


def restyle(data_type: DataType, side: str, raw: Any, styles: Styles) -> Any:
    """An object whose words for numbers and dates are read as the app's examples write them; others stay."""
    if not styles or data_type.pointers:
        return raw
    found = raw
    for k, (name, field) in enumerate(zip(data_type.field_names, data_type.fields, strict=True)):
        style = styles.get(f"{side}.{name}")
        part = _part(data_type, raw, k, name) if style is not None and _is_styled(field) else None
        if style is None or not isinstance(part, str):
            continue
        read = _moment_reader(style.order) if isinstance(field, Date) else _number_reader(style)
        value = None if read is None else read(part)
        if value is not None:
            found = _with_part(found, k, name, value)
    return found


def _is_styled(field: Field) -> bool:
    return isinstance(field, Date) or (isinstance(field, Number) and field.count == 1)


def _part(data_type: DataType, raw: Any, k: int, name: str) -> Any:
    if isinstance(raw, Mapping):
        return raw.get(name)
    if isinstance(raw, list | tuple) and len(raw) == len(data_type.fields) > 1:
        return raw[k]
    return raw if len(data_type.fields) == 1 else None


def _with_part(raw: Any, k: int, name: str, value: float) -> Any:
    if isinstance(raw, Mapping):
        return {**raw, name: value}
    if isinstance(raw, list | tuple):
        return [*raw[:k], value, *raw[k + 1 :]]
    return value


def _number_reader(style: ColumnStyle) -> Callable[[str], float | None] | None:
    found = NumberStyle(style.decimal or ".", style.unit)
    return None if found == NumberStyle() else partial(read_number, style=found)


def _moment_reader(order: str) -> Callable[[str], float | None] | None:
    return partial(read_moment, order=order) if order else None


def _read_all(
    row: Mapping[str, Any], readers: Sequence[tuple[str, Callable[[str], float | None]]]
) -> dict[str, Any]:
    found = {}
    for name, read in readers:
        cell = row.get(name)
        value = read(cell) if isinstance(cell, str) else None
        if value is not None:
            found[name] = value
    return found

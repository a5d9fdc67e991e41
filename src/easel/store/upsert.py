"""What SQLAlchemy spells once for each database: `INSERT … ON CONFLICT`, locks by name, many rows in one statement.

On PostgreSQL many rows travel as arrays: one statement is sent, planned and run, the same however many they are. SQLite
runs in this process, where a statement costs next to nothing.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import orjson
from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    ColumnElement,
    Float,
    Integer,
    String,
    Subquery,
    Table,
    Text,
    Update,
    any_,
    bindparam,
    cast,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from easel.store.engine import Tx
from easel.store.schema.metadata import Moment

T = TypeVar("T")


def insert_or(tx: Tx, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that takes `.on_conflict_do_nothing()` and `.on_conflict_do_update(…)`."""
    return postgresql.insert(table) if tx.conn.dialect.name == "postgresql" else sqlite.insert(table)


def lock(tx: Tx, name: str) -> None:
    """Hold `name` until the transaction ends: others who lock it wait. SQLite has one writer anyway."""
    if tx.conn.dialect.name == "postgresql":
        parameters = {"space": 0x4541534C, "key": zlib.crc32(name.encode()) - 2**31}
        tx.execute(text("SELECT pg_advisory_xact_lock(:space, :key)"), parameters)


def chunks(values: Sequence[T], length: int = 1000) -> Iterator[Sequence[T]]:
    """Few enough at once for the parameters of one statement."""
    return (values[i : i + length] for i in range(0, len(values), length))


def slots_for(values: Sequence[Any]) -> int:
    """Returns for how many places a statement is built that looks for these values: few different numbers of them."""
    return 1 << max(len(values) - 1, 0).bit_length()


def in_slots(column: ColumnElement[Any], name: str, slots: int) -> ColumnElement[bool]:
    """`column IN (…)` with so many places, for a statement that is built once and run often."""
    return column.in_([bindparam(f"{name}_{k}", type_=column.type) for k in range(slots)])


def slot_values(name: str, values: Sequence[Any], slots: int) -> dict[str, Any]:
    """Returns what such a statement is run with: the last value takes the places that are left."""
    last = len(values) - 1
    return {f"{name}_{k}": values[min(k, last)] for k in range(slots)}


def is_in(tx: Tx, column: Column[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """`column IN (values)`."""
    if tx.conn.dialect.name == "postgresql":
        return column == any_(cast(list(values), ARRAY(column.type)))
    return column.in_(values)


def insert_many(tx: Tx, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """All have the same columns, of plain types."""
    if not rows:
        return
    if tx.conn.dialect.name == "postgresql":
        names = list(rows[0])
        columns = [unnested(table.c[name], [row[name] for row in rows]) for name in names]
        tx.execute(insert(table).from_select(names, select(*columns)))
    else:
        tx.execute(insert(table), [dict(row) for row in rows])


def update_many(tx: Tx, key: Column[Any], column: Column[Any], values: Mapping[Any, Any]) -> None:
    """Set `column` where `key` is one of these, to what it maps to."""
    if values:
        assert isinstance(key.table, Table)
        rows = [{"k": of, "v": value} for of, value in values.items()]
        new = GivenRows(tx, {"k": key, "v": column}, rows)
        new.execute(update(key.table).where(key == new["k"]).values({column.name: new["v"]}))


class GivenRows:
    """Rows that a statement works through: `given["name"]` stands for their value in it. `columns` tell their types."""

    def __init__(self, tx: Tx, columns: Mapping[str, Column[Any]], rows: Sequence[Mapping[str, Any]]) -> None:
        self._tx, self._rows = tx, rows
        self._arrays: Subquery | None = None
        self._types = {name: column.type for name, column in columns.items()}
        if tx.conn.dialect.name == "postgresql":
            arrays = [
                unnested(column, [row[name] for row in rows]).label(name) for name, column in columns.items()
            ]
            self._arrays = select(*arrays).subquery()

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        if self._arrays is not None:
            return self._arrays.c[name]
        return bindparam(f"given_{name}", type_=self._types[name])

    def execute(self, statement: Update) -> None:
        if self._arrays is not None:
            self._tx.execute(statement)
        else:
            rows = [{f"given_{name}": value for name, value in row.items()} for row in self._rows]
            self._tx.execute(statement, rows)


def unnested(column: Column[Any], values: list[Any]) -> ColumnElement[Any]:
    """PostgreSQL only: the values of a column, one a row."""
    written = _as_array(column, values)
    if written is None:
        return func.unnest(cast(values, ARRAY(column.type)))
    # One text that is read there: the driver writes arrays value by value, which takes ten times as long.
    return cast(func.unnest(cast(literal(written, Text()), ARRAY(column.type))), column.type)


_COLUMNS = (String, Integer, Float, Boolean, Moment)
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _as_array(column: Column[Any], values: list[Any]) -> str | None:
    """Returns the values as `array_text` writes them; None where that would not tell all of them."""
    if not isinstance(column.type, _COLUMNS):
        return None
    kinds = set(map(type, values))
    if isinstance(column.type, Moment) and kinds <= {datetime, type(None)}:
        values = [None if value is None else Moment.whole_microseconds(value) for value in values]
    elif not kinds <= _PLAIN or (float in kinds and not all(map(_is_told, values))):
        return None
    try:
        return array_text(values)
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits: the database says what is wrong
        return None


def array_text(values: Sequence[Any]) -> str:
    """Returns texts or finite numbers as PostgreSQL writes arrays: as JSON, but for brackets and escapes."""
    written = orjson.dumps(values).decode()
    if "\\" in written:
        return "{" + ",".join(map(_escaped, values)) + "}"
    return "{" + written[1:-1] + "}"


def _escaped(value: str | None) -> str:
    if value is None:
        return "null"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _is_told(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)

"""A logical copy of the whole database: table by table as JSON lines, from one consistent view.

It reads the tables that are there rather than those this release knows, so it copies any schema, and it
restores into SQLite and PostgreSQL alike.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

from sqlalchemy import JSON, MetaData, Table, func, insert, select, text

from easel.errors import InvalidInput
from easel.store.engine import Store, Tx
from easel.store.migrate import migrate, revision

_BATCH = 1000
_OF_THE_SCHEMA = ("alembic_version", "schema_support")
"""Written by migrations, so not copied."""


class Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def dump(store: Store, out: Sink) -> int:
    """Write everything to `out`; returns the number of rows."""
    rows = 0
    with store.snapshot() as tx:
        tables = _tables(tx)
        header = {"easel": "database", "revision": revision(store), "tables": [t.name for t in tables]}
        out.write(json.dumps(header).encode() + b"\n")
        for table in tables:
            out.write(json.dumps({"table": table.name}).encode() + b"\n")
            for row in tx.conn.execution_options(yield_per=_BATCH).execute(select(table)):
                out.write(json.dumps([_plain(v) for v in row]).encode() + b"\n")
                rows += 1
    return rows


def load(store: Store, lines: Iterator[bytes]) -> int:
    """Fill an empty database from a dump; returns the number of rows."""
    if revision(store) is not None:
        raise InvalidInput("the database is not empty: restore into a new one")
    header = json.loads(next(lines))
    if header.get("easel") != "database":
        raise InvalidInput("this is no Easel database dump")
    migrate(store, backup=lambda _revision: None, to=header["revision"])
    rows = 0
    with store.write() as tx:
        if store.is_sqlite:  # rows of one table may name rows of a later one
            tx.execute(text("PRAGMA defer_foreign_keys=ON"))
        else:
            tx.execute(text("SET LOCAL session_replication_role = replica"))
        tables = {table.name: table for table in _tables(tx)}
        table: Table | None = None
        for name, batch in _batches(lines):
            table = tables[name]
            columns = [column.name for column in table.columns]
            values = [dict(zip(columns, map(_value, row), strict=True)) for row in batch]
            tx.execute(insert(table), values)
            rows += len(values)
        if not store.is_sqlite:
            _reset_counters(tx, tables.values())
    return rows


def _tables(tx: Tx) -> list[Table]:
    found = MetaData()
    found.reflect(tx.conn)
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type.none_as_null = True
    return [table for table in found.sorted_tables if table.name not in _OF_THE_SCHEMA]


def _batches(lines: Iterator[bytes]) -> Iterator[tuple[str, list[list[Any]]]]:
    name = ""
    parsed = (json.loads(line) for line in lines)
    while chunk := list(islice(parsed, _BATCH)):
        batch: list[list[Any]] = []
        for item in chunk:
            if isinstance(item, dict):
                if batch:
                    yield name, batch
                name, batch = item["table"], []
            else:
                batch.append(item)
        if batch:
            yield name, batch


def _plain(value: Any) -> Any:
    return (
        {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else _tag(value)
    )


def _tag(value: Any) -> Any:
    # JSON columns hold objects of their own; wrapped, they cannot be mistaken for bytes.
    return {"json": value} if isinstance(value, dict) else value


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"]) if "base64" in value else value["json"]
    return value


def _reset_counters(tx: Tx, tables: Iterable[Table]) -> None:
    """PostgreSQL's counters do not see rows that bring their own number."""
    for table in tables:
        for column in table.primary_key.columns:
            if column.autoincrement is True or (
                column.server_default is not None and "nextval" in str(column.server_default.arg)  # type: ignore[attr-defined]
            ):
                top = tx.execute(select(func.max(column))).scalar_one()
                if top is not None:
                    sequence = text("SELECT setval(pg_get_serial_sequence(:table, :column), :top)")
                    tx.execute(sequence, {"table": table.name, "column": column.name, "top": top})

"""`INSERT … ON CONFLICT`, which SQLAlchemy spells once for each database, and locks by name."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

from sqlalchemy import Table, text
from sqlalchemy.dialects import postgresql, sqlite

from easel.store.engine import Tx

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

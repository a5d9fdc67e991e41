"""`digest IN (…)` for thousands of digests as one parameter: a list of a thousand parameters costs more to prepare
than to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Integer, LargeBinary, any_, bindparam, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY

from easel.store.engine import Tx

LENGTH = 32
MOST = 20_000
"""Digests in one statement; `chunks(digests, MOST)` cuts longer lists."""


def digest_in(tx: Tx, column: Column[Any], digests: Sequence[bytes]) -> ColumnElement[bool]:
    """Whether `column` is one of these digests of 32 bytes: an array on PostgreSQL, on SQLite one long blob that is
    cut by a counting query."""
    if tx.conn.dialect.name == "postgresql":
        return column == any_(bindparam(None, list(digests), ARRAY(LargeBinary)))
    packed = bindparam(None, b"".join(digests), LargeBinary)
    at = select(literal(1, Integer).label("at")).where(literal(len(digests)) > 0).cte("cut", recursive=True)
    at = at.union_all(select(at.c.at + LENGTH).where(at.c.at + LENGTH < literal(len(digests) * LENGTH)))
    return column.in_(select(func.substr(packed, at.c.at, LENGTH)))

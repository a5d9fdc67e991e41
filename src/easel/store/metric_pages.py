"""A metric's history in columns, as PostgreSQL sends them fastest: arrays in binary, and no row for each point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import exists, select

from easel.store.engine import Tx
from easel.store.job_series import Series
from easel.store.schema.jobs import job_metric_repeats

MOST = 25_000
"""So many points are read at once."""
_COLUMNS = """
SELECT coalesce(array_agg(p.step), '{}'), coalesce(array_agg(p.value), '{}'), coalesce(array_agg(p.at), '{}'),
  coalesce(array_agg(p.text) FILTER (WHERE p.value IS NULL), '{}')
FROM (
  SELECT m.step, m.value, m.text, m.at FROM job_metrics m
  WHERE m.job_id = %(job_id)s AND m.attempt = %(attempt)s AND m.name = %(name)s AND m.step > %(after)s
  ORDER BY m.step LIMIT %(limit)s
) p
"""
_FIRST = -(2**63)


class SeriesColumns(NamedTuple):
    """Points by step; `times` in microseconds since 1970. Points without a value are no numbers: `texts` has, for each
    of those in turn, which."""

    steps: list[int]
    values: list[float | None]
    times: list[int]
    texts: list[str]


def in_columns(tx: Tx, of: Series) -> bool:
    """Whether this history can be read in columns: only of PostgreSQL, and only with one value a step."""
    if tx.conn.dialect.name != "postgresql":
        return False
    table = job_metric_repeats
    again = exists().where(
        table.c.job_id == of.job_id, table.c.attempt == of.attempt, table.c.name == of.name
    )
    return not tx.execute(select(again)).scalar_one()


def read_columns(tx: Tx, of: Series, after: int | None, limit: int | None) -> Iterator[SeriesColumns]:
    """Yields the points after a step, at most `limit` of them, some at a time."""
    last, left = _FIRST if after is None else after, limit
    driver: Any = tx.conn.connection.driver_connection
    while left is None or left > 0:
        wanted = MOST if left is None else min(left, MOST)
        with driver.cursor(binary=True) as cursor:
            cursor.execute(_COLUMNS, {**of._asdict(), "after": last, "limit": wanted})
            found = SeriesColumns._make(cursor.fetchone())
        if found.steps:
            yield found
            last = found.steps[-1]
        if len(found.steps) < wanted:
            return
        left = None if left is None else left - wanted

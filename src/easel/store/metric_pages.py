"""A page of a metric's history, by one statement of PostgreSQL that writes the JSON which clients get.

Making a million points into objects and those into text takes longer than reading them.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, Text, TextClause, bindparam, exists, func, select, text

from easel.store.engine import Tx
from easel.store.job_series import Series
from easel.store.schema.jobs import job_metric_repeats, job_metrics

# What is infinite is the largest number that there is, as MLflow's own server says it.
_PAGE = """
SELECT count(*) AS points, max(p.step) AS last_step, string_agg(concat(:head, CASE
    WHEN p.value IS NOT NULL THEN CAST(p.value AS text)
    WHEN p.text = 'nan' THEN '"NaN"'
    WHEN p.text = '-inf' THEN '-1.7976931348623157e308'
    ELSE '1.7976931348623157e308' END,
  ',"timestamp":', p.at / 1000, ',"step":', p.step, '}'), ','{order}) AS written
FROM (
  SELECT m.step, m.value, m.text, m.at FROM job_metrics m
  WHERE m.job_id = :job_id AND m.attempt = :attempt AND m.name = :name AND m.step > :after
  ORDER BY m.step LIMIT :limit
) p
"""


def _page(order: str) -> TextClause:
    given = (bindparam("head", type_=Text()), bindparam("limit", type_=BigInteger()))
    return text(_PAGE.replace("{order}", order)).bindparams(*given)


_BY_STEP, _BY_TIME = _page(""), _page(" ORDER BY p.at, p.step")
_FIRST = -(2**63)


class WrittenPage(NamedTuple):
    """`written` are the points, with commas between them. `last_step` is None where there are none."""

    points: int
    last_step: int | None
    written: str


def can_write(tx: Tx, of: Series) -> bool:
    """Whether the database can write this history: only PostgreSQL does, and only one value a step."""
    if tx.conn.dialect.name != "postgresql":
        return False
    table = job_metric_repeats
    again = exists().where(
        table.c.job_id == of.job_id, table.c.attempt == of.attempt, table.c.name == of.name
    )
    return not tx.execute(select(again)).scalar_one()


def is_longer(tx: Tx, of: Series, points: int, after: int = _FIRST) -> bool:
    """Whether there are more points than so many after a step."""
    table = job_metrics
    found = (
        select(table.c.step)
        .where(
            table.c.job_id == of.job_id,
            table.c.attempt == of.attempt,
            table.c.name == of.name,
            table.c.step > after,
        )
        .limit(points + 1)
    )
    return int(tx.execute(select(func.count()).select_from(found.subquery())).scalar_one()) > points


def written_page(
    tx: Tx,
    of: Series,
    head: str,
    *,
    after: int | None = None,
    limit: int | None = None,
    by_time: bool = False,
) -> WrittenPage:
    """Returns the points after a step, in the order of their steps or times. `head` begins each of them."""
    values = {
        "head": head,
        **of._asdict(),
        "after": _FIRST if after is None else after,
        "limit": limit,
    }
    row = tx.execute(_BY_TIME if by_time else _BY_STEP, values).one()
    return WrittenPage(row.points, row.last_step, row.written or "")

"""Series of metrics, and blocks of their extremes: a picture of a million points reads some thousand rows.

A block holds the lowest and the highest of about `BLOCK` points that follow each other. Blocks cover all points up
to the series' `closed_to`, without gaps; what comes after is read as it is. A late point makes its block anew.
"""

from __future__ import annotations

import hashlib
import math
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, and_, case, delete, func, insert, or_, select, update

from easel.ids import JobId
from easel.store.engine import AnyRow, Tx
from easel.store.schema.jobs import job_metric_repeats, job_metrics, job_series, job_series_blocks
from easel.store.upsert import chunks, insert_or, unnested

BLOCK = 128
MOST_OPEN = 6 * BLOCK
"""So many points of a series may be outside of blocks before more are made: each time costs three statements."""
INFINITE = {"inf": sys.float_info.max, "-inf": -sys.float_info.max}
_POINT = ("job_id", "attempt", "name", "step", "value", "text", "at")
READ_WHOLE = 40_000
"""Shorter series are read point by point: their blocks would be coarser than a picture."""


@dataclass(frozen=True, slots=True)
class Point:
    """`text` says what the value is when it is no number: nan, inf or -inf."""

    step: int
    value: float | None
    text: str | None
    at: datetime


class Mark(NamedTuple):
    """Where a point is; without a value it is no number."""

    step: int
    value: float | None


class Series(NamedTuple):
    job_id: str
    attempt: int
    name: str


def add_metrics(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """A step logged again replaces the earlier value."""
    if not rows:
        return
    made = insert_or(tx, job_metrics)
    made = made.on_conflict_do_update(
        index_elements=["job_id", "attempt", "name", "step"],
        set_={"value": made.excluded.value, "text": made.excluded.text, "at": made.excluded.at},
    )
    tx.execute(made, [{key: row[key] for key in _POINT} for row in rows])
    _note(tx, rows, rows)


def _note(tx: Tx, rows: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> None:
    """Keep the series of `rows` up to date: their last and extreme values, and blocks for the points that are `new`."""
    steps: dict[Series, list[int]] = {}
    for row in new:
        steps.setdefault(_series(row), []).append(row["step"])
    found: dict[Series, dict[str, Any]] = {}
    for row in rows:
        of = _series(row)
        summary = _summary(row)
        found[of] = summary if of not in found else _joined(found[of], summary)
    values = [
        {**of._asdict(), "closed": 0, "open": len(steps.get(of, ())), **summary}
        for of, summary in sorted(found.items())
    ]
    for known in _merge(tx, values):
        of = Series(known.job_id, known.attempt, known.name)
        make_blocks(tx, of, known.closed_to, known.open, steps.get(of, ()))


def make_blocks(tx: Tx, of: Series, closed_to: int | None, opened: int, new: Sequence[int]) -> None:
    """Blocks for what is open, once that is enough, and anew for those into which `new` steps fall."""
    late = [step for step in new if closed_to is not None and step <= closed_to]
    if late:
        _renew(tx, of, late)
    if opened >= MOST_OPEN:
        _close(tx, of, closed_to)


def add_further(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Log points as MLflow means them: further points at a step are kept beside the first, the same one only once."""
    if not rows:
        return
    points: dict[tuple[Series, int], Mapping[str, Any]] = {}
    others = [row for row in rows if points.setdefault((_series(row), row["step"]), row) is not row]
    standing = _insert_new(tx, job_metrics, list(points.values()), _POINT)
    first = [row for place, row in points.items() if (*place[0], place[1]) in standing]
    others += [row for place, row in points.items() if (*place[0], place[1]) not in standing]
    add_repeats(tx, others)
    _note(tx, rows, first)


def add_repeats(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep points whose steps have one already, but those that stand there already."""
    if rows and (others := _without_standing(tx, rows)):
        marked = [{**row, "mark": _mark(row)} for row in others]
        _insert_new(tx, job_metric_repeats, marked, (*_POINT, "mark"))


def _insert_new(
    tx: Tx, table: Table, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> set[tuple[Any, ...]]:
    """Insert what is not there; returns (job, attempt, name, step) of what was inserted."""
    made = insert_or(tx, table).on_conflict_do_nothing()
    keys = (table.c.job_id, table.c.attempt, table.c.name, table.c.step)
    if tx.conn.dialect.name == "postgresql":
        arrays = [unnested(table.c[name], [row[name] for row in rows]) for name in columns]
        return {tuple(row) for row in tx.execute(made.from_select(columns, select(*arrays)).returning(*keys))}
    values = [{name: row[name] for name in columns} for row in rows]
    return {tuple(row) for row in tx.execute(made.returning(*keys), values)}


def _without_standing(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the points that are not the very ones that stand at their steps."""
    standing: dict[tuple[Series, int], tuple[Any, ...]] = {}
    steps: dict[Series, set[int]] = {}
    for row in rows:
        steps.setdefault(_series(row), set()).add(row["step"])
    for of, wanted in steps.items():
        for point in points_at(tx, of, sorted(wanted)):
            standing[of, point.step] = (point.value, point.text, point.at)
    return [
        row
        for row in rows
        if standing.get((_series(row), row["step"])) != (row["value"], row["text"], row["at"])
    ]


def _mark(row: Mapping[str, Any]) -> int:
    """A number for the value: equal for equal values, and hardly ever for others."""
    said = f"{row['value']!r} {row['text']}".encode()
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big", signed=True)


def _series(row: Mapping[str, Any]) -> Series:
    return Series(row["job_id"], row["attempt"], row["name"])


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "project_id": row["project_id"],
        "artifact_id": row["artifact_id"],
        "last_step": row["step"],
        "last_at": row["at"],
        "last": INFINITE.get(row["text"], row["value"]),
        "last_text": row["text"],
        "low": row["value"],
        "high": row["value"],
    }


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What is known of a series from two of its parts."""
    newer = max(one, other, key=_recency)
    lows = [part["low"] for part in (one, other) if part["low"] is not None]
    highs = [part["high"] for part in (one, other) if part["high"] is not None]
    return {**newer, "low": min(lows, default=None), "high": max(highs, default=None)}


def _recency(part: Mapping[str, Any]) -> tuple[Any, ...]:
    return part["last_step"], part["last_at"], -math.inf if part["last"] is None else part["last"]


def _merge(tx: Tx, values: Sequence[Mapping[str, Any]]) -> Sequence[AnyRow]:
    """Join what is new with what is known of each series; returns their rows as they are then."""
    made = insert_or(tx, job_series)
    if tx.conn.dialect.name == "postgresql":
        names = list(values[0])
        arrays = [unnested(job_series.c[name], [row[name] for row in values]) for name in names]
        made = made.from_select(names, select(*arrays))
    new, old = made.excluded, job_series.c
    lowest = -(2.0**1023)
    later = or_(
        old.last_step.is_(None),
        new.last_step > old.last_step,
        and_(new.last_step == old.last_step, new.last_at > old.last_at),
        and_(
            new.last_step == old.last_step,
            new.last_at == old.last_at,
            func.coalesce(new.last, lowest) >= func.coalesce(old.last, lowest),
        ),
    )
    newest = {
        name: case((later, new[name]), else_=old[name])
        for name in ("last_step", "last_at", "last", "last_text")
    }
    made = made.on_conflict_do_update(
        index_elements=["job_id", "attempt", "name"],
        set_={
            "open": old.open + new.open,
            "project_id": new.project_id,
            "artifact_id": new.artifact_id,
            **newest,
            "low": case((or_(old.low.is_(None), new.low < old.low), new.low), else_=old.low),
            "high": case((or_(old.high.is_(None), new.high > old.high), new.high), else_=old.high),
        },
    )
    returned = made.returning(old.job_id, old.attempt, old.name, old.closed_to, old.open)
    if tx.conn.dialect.name == "postgresql":
        return tx.execute(returned).all()
    return tx.execute(returned, [dict(row) for row in values]).all()


def _close(tx: Tx, of: Series, closed_to: int | None) -> None:
    """Blocks for all open points but the newest one or two blocks of them."""
    points = _raw(tx, of, () if closed_to is None else (job_metrics.c.step > closed_to,))
    count = max(0, len(points) // BLOCK - 1)
    made = [_block(of, points[i * BLOCK : (i + 1) * BLOCK]) for i in range(count)]
    if made:
        tx.execute(insert(job_series_blocks), made)
        closed_to = made[-1]["last"]
    values = {"closed_to": closed_to, "open": len(points) - count * BLOCK}
    tx.execute(
        update(job_series)
        .where(_is(job_series, of))
        .values(**values, closed=job_series.c.closed + count * BLOCK)
    )


def _renew(tx: Tx, of: Series, late: Sequence[int]) -> None:
    """The blocks in which these steps lie, made anew; what lies before the first belongs to it."""
    here = _is(job_series_blocks, of)
    old = tx.execute(
        select(job_series_blocks.c.first, job_series_blocks.c.last)
        .where(here)
        .order_by(job_series_blocks.c.first)
    ).all()
    firsts = [row.first for row in old]
    for number in {max(0, bisect_right(firsts, step) - 1) for step in late}:
        low = min(firsts[number], *late) if number == 0 else firsts[number]
        high = firsts[number + 1] - 1 if number + 1 < len(firsts) else old[number].last
        points = _raw(tx, of, (job_metrics.c.step.between(low, high),))
        tx.execute(delete(job_series_blocks).where(here, job_series_blocks.c.first == firsts[number]))
        tx.execute(insert(job_series_blocks), [_block(of, points)])
    total = tx.execute(select(func.sum(job_series_blocks.c.points)).where(here)).scalar_one()
    tx.execute(update(job_series).where(_is(job_series, of)).values(closed=total))


def _block(of: Series, points: Sequence[Mark]) -> dict[str, Any]:
    numbers = [(value, step) for step, value in points if value is not None]
    low = min(numbers, default=(None, None))
    high = max(numbers, default=(None, None))
    return {
        **of._asdict(),
        "first": points[0].step,
        "last": points[-1].step,
        "points": len(points),
        "low_step": low[1],
        "low": low[0],
        "high_step": high[1],
        "high": high[0],
        "odd_step": next((point.step for point in points if point.value is None), None),
    }


def series_of(tx: Tx, job_id: JobId, attempt: int) -> dict[str, int]:
    """Each series of the job and how many points it has."""
    tail = (
        select(func.count())
        .where(
            job_metrics.c.job_id == job_series.c.job_id,
            job_metrics.c.attempt == job_series.c.attempt,
            job_metrics.c.name == job_series.c.name,
            job_metrics.c.step > func.coalesce(job_series.c.closed_to, -(2**63)),
        )
        .scalar_subquery()
    )
    query = (
        select(job_series.c.name, job_series.c.closed + tail)
        .where(job_series.c.job_id == job_id, job_series.c.attempt == attempt)
        .order_by(job_series.c.name)
    )
    return {str(name): int(count) for name, count in tx.execute(query)}


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """The last, the least and the largest value of one series; None for what is no number."""

    name: str
    last: float | None
    low: float | None
    high: float | None


def summaries_of(tx: Tx, job_id: str, attempt: int) -> list[SeriesSummary]:
    """Returns the summaries by name."""
    query = select(job_series.c.name, job_series.c.last, job_series.c.low, job_series.c.high).where(
        job_series.c.job_id == job_id, job_series.c.attempt == attempt
    )
    return [SeriesSummary(*row) for row in tx.execute(query.order_by(job_series.c.name))]


def outline(tx: Tx, of: Series, read_whole: int = READ_WHOLE) -> tuple[int, list[Mark]]:
    """(how many points there are, all of them or, of a long series, the extremes of its blocks), by step."""
    known = tx.execute(select(job_series).where(_is(job_series, of))).first()
    if known is None:
        return 0, []
    if known.closed <= read_whole:
        whole = _raw(tx, of, ())
        return len(whole), whole
    marks = [mark for block in _blocks(tx, of) for mark in _marks(*block)]
    tail = _raw(tx, of, (job_metrics.c.step > known.closed_to,))
    ends = _raw(tx, of, (job_metrics.c.step == _first_step(tx, of),))
    return known.closed + len(tail), [*(mark for mark in ends if mark != marks[0]), *marks, *tail]


def _blocks(tx: Tx, of: Series) -> Sequence[AnyRow]:
    columns = (
        getattr(job_series_blocks.c, name) for name in ("low_step", "low", "high_step", "high", "odd_step")
    )
    query = select(*columns).where(_is(job_series_blocks, of)).order_by(job_series_blocks.c.first)
    return tx.execute(query).all()


def _marks(
    low_step: int | None, low: float | None, high_step: int | None, high: float | None, odd_step: int | None
) -> Sequence[Mark]:
    """What a block knows, by step. There are thousands of blocks in a picture: the usual one goes the short way."""
    if odd_step is None and low_step is not None and high_step is not None and low_step != high_step:
        lowest, highest = Mark(low_step, low), Mark(high_step, high)
        return (lowest, highest) if low_step < high_step else (highest, lowest)
    shown = {low_step: low, high_step: high, odd_step: None}
    return [Mark(step, shown[step]) for step in sorted(step for step in shown if step is not None)]


def _first_step(tx: Tx, of: Series) -> int:
    query = select(func.min(job_series_blocks.c.first)).where(_is(job_series_blocks, of))
    return int(tx.execute(query).scalar_one())


def points_at(tx: Tx, of: Series, steps: Sequence[int]) -> list[Point]:
    """The points at these steps, in their order."""
    columns = (job_metrics.c.step, job_metrics.c.value, job_metrics.c.text, job_metrics.c.at)
    found: list[Point] = []
    for some in chunks(steps, 500):
        query = select(*columns).where(_is(job_metrics, of), job_metrics.c.step.in_(some))
        found += [Point(*row) for row in tx.execute(query.order_by(job_metrics.c.step))]
    return found


def _raw(tx: Tx, of: Series, where: Sequence[ColumnElement[bool]]) -> list[Mark]:
    query = select(job_metrics.c.step, job_metrics.c.value).where(_is(job_metrics, of), *where)
    return [Mark(step, value) for step, value in tx.execute(query.order_by(job_metrics.c.step))]


def _is(table: Table, of: Series) -> ColumnElement[bool]:
    return and_(table.c.job_id == of.job_id, table.c.attempt == of.attempt, table.c.name == of.name)

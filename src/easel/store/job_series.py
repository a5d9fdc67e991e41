"""Series of metrics, and blocks of their extremes: a picture of a million points reads some thousand rows.

A block holds the lowest and the highest of about `BLOCK` points that follow each other. Blocks cover all points up
to the series' `closed_to`, without gaps; what comes after is read as it is. A late point makes its block anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, and_, delete, func, insert, select, update

from easel.ids import JobId
from easel.store.engine import AnyRow, Tx
from easel.store.schema.jobs import job_metrics, job_series, job_series_blocks
from easel.store.upsert import chunks, insert_or

BLOCK = 128
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
    tx.execute(made, [dict(row) for row in rows])
    steps: dict[Series, list[int]] = {}
    for row in rows:
        steps.setdefault(Series(row["job_id"], row["attempt"], row["name"]), []).append(row["step"])
    noted = insert_or(tx, job_series)
    noted = noted.on_conflict_do_update(
        index_elements=["job_id", "attempt", "name"],
        set_={"open": job_series.c.open + noted.excluded.open},
    )
    values = [{**of._asdict(), "closed": 0, "open": len(new)} for of, new in steps.items()]
    for known in tx.execute(noted.returning(job_series), values).all():
        of = Series(known.job_id, known.attempt, known.name)
        late = [step for step in steps[of] if known.closed_to is not None and step <= known.closed_to]
        if late:
            _renew(tx, of, late)
        if known.open >= 3 * BLOCK:
            _close(tx, of, known.closed_to)


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

"""Bills: what one job's time on its resources costs, line by line. Pure rules over facts.

Rules, in the order in which they apply:
1. Time is paid from the moment a device starts the job until it ends, however it ends; waiting is free.
2. Seconds are rounded up and raised to the minimum as the book in force at the start says.
3. When prices change while a job runs, each stretch of time pays the price in force then. Seconds that
rounding or a
   minimum adds are paid at the last price.
4. A line never crosses the end of a month (UTC), so that months add up.
5. Each line is rounded to a millionth of the currency, half up; the total is the sum of the lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from easel.errors import InvalidInput
from easel.price.book import PriceBook
from easel.price.grid import ON_CPU, ResourceShape

MICROS = 1_000_000


@dataclass(frozen=True)
class PriceChange:
    """From `since` on this book holds."""

    since: datetime
    book: PriceBook


@dataclass(frozen=True)
class BillLine:
    """`seconds` at `per_hour`, from `start` on; `micros` are millionths of the currency."""

    start: datetime
    seconds: float
    per_hour: float
    micros: int
    book: str

    @property
    def month(self) -> str:
        return self.start.strftime("%Y-%m")


@dataclass(frozen=True)
class Bill:
    currency: str
    lines: tuple[BillLine, ...]

    @property
    def micros(self) -> int:
        return sum(line.micros for line in self.lines)

    @property
    def amount(self) -> Decimal:
        return Decimal(self.micros) / MICROS


def draw_up(
    shape: ResourceShape,
    start: datetime,
    end: datetime,
    prices: Sequence[PriceChange],
    factor: float = 1.0,
) -> Bill:
    """The bill of a job that held `shape` from `start` to `end`. Clocks that went back give zero seconds,
    which a minimum may still raise. Hours are the sun's: no zone's daylight saving makes one longer or shorter.
    `factor` is what its device costs against others.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    books = sorted(prices, key=lambda change: change.since)
    if not books or books[0].since > start:
        raise InvalidInput("no price is in force when the job starts: add a price book that begins earlier")
    first = _in_force(books, start)
    if any(change.book.currency != first.currency for change in books):
        raise InvalidInput("one history of prices has one currency")
    elapsed = max((end - start).total_seconds(), 0.0)
    paid_until = start + timedelta(seconds=float(first.billing.seconds(np.asarray(elapsed))))
    worked_until = start + timedelta(seconds=elapsed)
    last = _in_force(books, worked_until)
    cuts = {change.since for change in books if start < change.since < worked_until}
    cuts |= set(_months_between(start, paid_until))
    edges = [start, *sorted(cuts), paid_until]
    lines = []
    for begin, finish in itertools.pairwise(edges):
        seconds = (finish - begin).total_seconds()
        if seconds <= 0:
            continue
        book = last if begin >= worked_until else _in_force(books, begin)
        lines.append(_line(shape, begin, seconds, book, factor))
    return Bill(first.currency, tuple(lines))


def micros_after(lines: Iterable[BillLine], moment: datetime) -> int:
    """What was run up after a moment: of a line that began before it, the share of its seconds that came after."""
    return sum(round(line.micros * _share_after(line, moment)) for line in lines)


def spread_over_days(start: datetime, seconds: float, micros: int) -> list[tuple[date, float, int]]:
    """Returns the days (in UTC) that a line of a bill touches, each with its seconds and millionths, which add up."""
    begin = start.astimezone(UTC)
    end = begin + timedelta(seconds=seconds)
    midnights = [begin]
    while (following := _midnight_after(midnights[-1])) < end:
        midnights.append(following)
    found, told = [], 0
    for here, then in itertools.pairwise([*midnights, end]):
        so_far = round(micros * ((then - begin).total_seconds() / seconds)) if seconds > 0 else micros
        found.append((here.date(), (then - here).total_seconds(), so_far - told))
        told = so_far
    return found


def _midnight_after(moment: datetime) -> datetime:
    return datetime.combine(moment.date() + timedelta(days=1), time(), UTC)


def _share_after(line: BillLine, moment: datetime) -> float:
    if line.start >= moment:
        return 1.0
    before = (moment - line.start).total_seconds()
    return max(0.0, line.seconds - before) / line.seconds if line.seconds > 0 else 0.0


def _line(shape: ResourceShape, start: datetime, seconds: float, book: PriceBook, factor: float) -> BillLine:
    gpu = None if shape.device == ON_CPU else shape.device
    per_hour = factor * float(book.rate(shape.cpus, shape.memory_mb, gpu, shape.gpus))
    exact = Decimal(repr(per_hour)) * Decimal(repr(seconds)) / 3600 * MICROS
    return BillLine(start, seconds, per_hour, int(exact.quantize(Decimal(1), ROUND_HALF_UP)), book.name)


def _in_force(books: Sequence[PriceChange], moment: datetime) -> PriceBook:
    return [change.book for change in books if change.since <= moment][-1]


def _months_between(start: datetime, end: datetime) -> list[datetime]:
    """The first instants of the months that begin after `start` and before `end`."""
    edges: list[datetime] = []
    at = start.astimezone(UTC)
    while True:
        at = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        if at >= end:
            return edges
        edges.append(at)

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.price.bill import PriceChange, draw_up, spread_over_days
from easel.price.book import Billing, FlatPrice, PriceBook, book_named
from easel.price.grid import ResourceShape

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
ONE_CPU = ResourceShape(1.0, 0.0)


def book(
    per_hour: float, granularity_s: float = 0.0, minimum_s: float = 0.0, name: str = "flat"
) -> PriceBook:
    return PriceBook(
        name=name,
        vcpu=FlatPrice(per_hour=per_hour),
        memory_gb=FlatPrice(per_hour=0.0),
        billing=Billing(granularity_s=granularity_s, minimum_s=minimum_s),
    )


def since_ever(price_book: PriceBook) -> list[PriceChange]:
    return [PriceChange(LONG_AGO, price_book)]


def test_an_hour_costs_the_hourly_price() -> None:
    bill = draw_up(ONE_CPU, NOON, NOON + timedelta(hours=1), since_ever(book(0.04)))
    assert bill.amount == Decimal("0.04")
    assert len(bill.lines) == 1


def test_the_papers_job_is_billed_as_in_its_table() -> None:
    bill = draw_up(
        ResourceShape(7.5, 3584), NOON, NOON + timedelta(minutes=16.6), since_ever(book_named("acai"))
    )
    assert round(bill.amount, 5) == Decimal("0.08837")


def test_minimums_and_rounding_are_those_of_the_start() -> None:
    minute = since_ever(book(3.6, granularity_s=1, minimum_s=60))
    assert draw_up(ONE_CPU, NOON, NOON + timedelta(seconds=3), minute).amount == Decimal("0.06")
    assert draw_up(ONE_CPU, NOON, NOON + timedelta(seconds=60.5), minute).amount == Decimal("0.061")
    assert draw_up(ONE_CPU, NOON, NOON, minute).amount == Decimal("0.06")


def test_a_clock_that_went_back_bills_no_time() -> None:
    assert draw_up(ONE_CPU, NOON, NOON - timedelta(hours=1), since_ever(book(1.0))).micros == 0


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (datetime(2026, 10, 25, 1, tzinfo=UTC) - timedelta(hours=1), "back"),
        (datetime(2026, 3, 29, 1, tzinfo=UTC) - timedelta(hours=1), "on"),
    ],
    ids=["clocks go back", "clocks go on"],
)
def test_daylight_saving_makes_no_job_dearer_or_cheaper(begins: datetime, ends: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    start, end = begins.astimezone(berlin), (begins + timedelta(hours=2)).astimezone(berlin)
    assert (end - start) != timedelta(hours=2), f"the wall clock was not turned {ends}"
    assert draw_up(ONE_CPU, start, end, since_ever(book(1.0))).micros == 2_000_000


def test_a_month_ends_at_the_same_moment_in_every_zone() -> None:
    new_year_there = datetime(2027, 1, 1, tzinfo=ZoneInfo("Pacific/Auckland"))
    bill = draw_up(ONE_CPU, new_year_there, new_year_there + timedelta(hours=1), since_ever(book(1.0)))
    assert [line.month for line in bill.lines] == ["2026-12"]


def test_a_price_change_while_the_job_runs_splits_the_bill() -> None:
    change = NOON + timedelta(minutes=30)
    prices = [PriceChange(LONG_AGO, book(1.0, name="old")), PriceChange(change, book(3.0, name="new"))]
    bill = draw_up(ONE_CPU, NOON, NOON + timedelta(hours=1), prices)
    assert [(line.book, line.seconds) for line in bill.lines] == [("old", 1800.0), ("new", 1800.0)]
    assert bill.amount == Decimal("2.0")


def test_seconds_added_by_rounding_are_paid_at_the_last_price() -> None:
    change = NOON + timedelta(minutes=10)
    prices = [PriceChange(LONG_AGO, book(1.0, 3600, name="old")), PriceChange(change, book(2.0, name="new"))]
    bill = draw_up(ONE_CPU, NOON, NOON + timedelta(minutes=20), prices)
    assert [(line.book, line.seconds) for line in bill.lines] == [("old", 600.0), ("new", 3000.0)]
    not_reached = [
        PriceChange(LONG_AGO, book(1.0, 3600)),
        PriceChange(NOON + timedelta(minutes=30), book(9.0)),
    ]
    assert draw_up(ONE_CPU, NOON, NOON + timedelta(minutes=20), not_reached).amount == Decimal(1)


def test_a_change_before_the_start_or_after_the_end_matters_not() -> None:
    prices = [
        PriceChange(LONG_AGO, book(5.0)),
        PriceChange(NOON - timedelta(seconds=1), book(1.0)),
        PriceChange(NOON + timedelta(hours=1), book(7.0)),
    ]
    assert draw_up(ONE_CPU, NOON, NOON + timedelta(hours=1), prices).amount == Decimal(1)


def test_lines_end_with_the_month() -> None:
    start = datetime(2026, 12, 31, 23, tzinfo=UTC)
    bill = draw_up(ONE_CPU, start, start + timedelta(hours=3), since_ever(book(1.0)))
    assert [(line.month, line.seconds) for line in bill.lines] == [("2026-12", 3600.0), ("2027-01", 7200.0)]


def test_a_line_is_shared_out_to_its_days_to_the_last_millionth() -> None:
    start = datetime(2026, 3, 28, 23, 59, 59, 500_000, tzinfo=UTC)
    assert [day for day, _, _ in spread_over_days(start, 86_400.0, 7)] == [
        date(2026, 3, 28),
        date(2026, 3, 29),
    ]
    for seconds, micros in ((0.0, 5), (0.5, 1), (0.6, 1_000_001), (300_000.0, 1_000_003)):
        found = spread_over_days(start, seconds, micros)
        assert sum(part for _, _, part in found) == micros
        assert sum(part for _, part, _ in found) == pytest.approx(seconds)


def test_gpus_are_billed() -> None:
    shape = ResourceShape(1.0, 1024.0, "t4", 2.0)
    bill = draw_up(shape, NOON, NOON + timedelta(hours=1), since_ever(book_named("n1")))
    assert bill.amount == Decimal("0.735848")


def test_a_job_before_all_prices_cannot_be_billed() -> None:
    with pytest.raises(InvalidInput, match="no price is in force"):
        draw_up(ONE_CPU, NOON, NOON, [PriceChange(NOON + timedelta(seconds=1), book(1.0))])
    euros = book(1.0).model_copy(update={"currency": "EUR"})
    with pytest.raises(InvalidInput, match="one currency"):
        draw_up(ONE_CPU, NOON, NOON, [*since_ever(book(1.0)), PriceChange(NOON, euros)])


@given(
    st.lists(st.tuples(st.integers(-100, 5000), st.floats(0, 10)), max_size=5),
    st.integers(0, 10_000_000),
)
def test_lines_cover_the_time_without_gap_or_overlap(changes: list[tuple[int, float]], seconds: int) -> None:
    prices = since_ever(book(1.0)) + [PriceChange(NOON + timedelta(minutes=m), book(p)) for m, p in changes]
    end = NOON + timedelta(seconds=seconds)
    lines = draw_up(ONE_CPU, NOON, end, prices).lines
    at = NOON
    for line in lines:
        assert line.start == at
        at += timedelta(seconds=line.seconds)
        assert line.month == (at - timedelta(microseconds=1)).strftime("%Y-%m")
    assert at == end

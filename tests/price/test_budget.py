from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from easel.errors import InvalidInput
from easel.price.budget import (
    Admit,
    Budget,
    Period,
    Refuse,
    RunningSpend,
    Spending,
    Stop,
    Warn,
    admit,
    money,
    put_back,
    watch,
)

TEN = Budget(10_000_000)


def test_a_job_is_let_in_while_its_estimate_fits() -> None:
    assert admit(TEN, Spending(9_000_000), 1_000_000) == Admit()
    assert isinstance(admit(TEN, Spending(9_000_000), 1_000_001), Refuse)


def test_running_jobs_count_with_what_they_are_expected_to_cost() -> None:
    running = (RunningSpend("a", 1_000_000, expected_micros=6_000_000),)
    refused = admit(TEN, Spending(3_000_000, running), 2_000_000)
    assert isinstance(refused, Refuse)
    assert "has 1.00 left after running jobs; this job is expected to cost 2.00" in refused.why
    assert admit(TEN, Spending(3_000_000, running), 1_000_000) == Admit()


def test_a_job_without_an_estimate_needs_something_left() -> None:
    assert admit(TEN, Spending(9_999_999)) == Admit()
    refused = admit(TEN, Spending(10_000_000))
    assert isinstance(refused, Refuse)
    assert "what this job will cost is not known" in refused.why


def test_no_budget_and_soft_budgets_refuse_nothing() -> None:
    soft = Budget(1, hard_stop=False)
    assert admit(None, Spending(10**12), 10**12) == Admit()
    assert admit(soft, Spending(10**12), 10**12) == Admit()
    assert not any(isinstance(act, Stop) for act in watch(soft, Spending(5, (RunningSpend("a", 5),))))
    assert watch(None, Spending(10**12, (RunningSpend("a", 5),))) == []


def test_a_budget_of_nothing_lets_nothing_in() -> None:
    assert isinstance(admit(Budget(0), Spending(0)), Refuse)


def test_warnings_come_once_for_each_share() -> None:
    spending = Spending(8_500_000)
    assert watch(TEN, spending) == [Warn(0.5, 8_500_000), Warn(0.8, 8_500_000)]
    assert watch(TEN, spending, warned=(0.5, 0.8)) == []


def test_running_jobs_that_cross_the_budget_are_stopped_the_dearest_first() -> None:
    running = (RunningSpend("cheap", 1_000_000), RunningSpend("dear", 4_000_000))
    assert watch(TEN, Spending(4_999_999, running), warned=(0.5, 0.8, 1.0)) == []
    acts = watch(TEN, Spending(5_000_000, running), warned=(0.5, 0.8))
    assert acts == [Warn(1.0, 10_000_000), Stop(("dear", "cheap"), "the month budget of 10.00 is spent")]


def test_of_what_has_not_begun_the_last_goes_back_and_only_as_much_as_must() -> None:
    running = (RunningSpend("runs", 1_000_000, soon_micros=500_000),)
    begin = tuple(RunningSpend(name, 0, soon_micros=1_000_000) for name in ("first", "second", "third"))
    spent = Spending(6_000_000, running, launching=begin)
    assert put_back(TEN, spent) == ["third"]
    assert put_back(TEN, replace(spent, billed_micros=7_600_000)) == ["third", "second", "first"]
    assert put_back(TEN, replace(spent, billed_micros=5_000_000)) == []
    assert put_back(replace(TEN, hard_stop=False), replace(spent, billed_micros=10_000_000)) == []
    assert watch(TEN, replace(spent, billed_micros=7_600_000), warned=(0.5, 0.8, 1.0)) == []
    (stop,) = watch(TEN, replace(spent, billed_micros=8_500_000), warned=(0.5, 0.8, 1.0))
    assert isinstance(stop, Stop)
    assert stop.jobs == ("runs",)


def test_a_month_begins_on_its_first_day_in_utc() -> None:
    now = datetime.fromisoformat("2026-03-01T00:30:00+02:00")
    assert Period.MONTH.start(now) == datetime(2026, 2, 1, tzinfo=UTC)
    assert Period.TOTAL.start(now) is None


@pytest.mark.parametrize(("limit", "warn_at"), [(-1, (0.5,)), (1, (0.0,)), (1, (50.0,))])
def test_senseless_budgets_are_refused(limit: int, warn_at: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput):
        Budget(limit, warn_at=warn_at)


def test_small_amounts_keep_their_digits() -> None:
    assert [money(m) for m in (0, 1_250_000, 88_370, 1)] == ["0.00", "1.25", "0.08837", "0.000001"]

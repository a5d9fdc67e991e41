"""What waiting jobs are told, and how often it comes true."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import select, update
from tests.flow.jobs.test_expected import NOON, ana, clock, ran, submit
from tests.run.test_forecast import device, queue, waiting

from easel.flow.jobs.expected import typical_gap
from easel.flow.jobs.promises import PromiseKeeper, PromiseOutcome, score, score_promises
from easel.ids import JobId
from easel.records.identity import Caller
from easel.run.calibrate import LEVELS, Forecast, ForecastOutcome, corrected_by
from easel.run.forecast import QueueNow, Spread, expected_starts
from easel.store.engine import Store
from easel.store.schema.jobs import jobs
from easel.store.schema.price import promises

__all__ = ["ana", "clock"]


def outcome(start: float, started: float, ended: float, *ends: float) -> PromiseOutcome:
    return PromiseOutcome(start, dict(zip(("end_80", "end_90", "end_95"), ends, strict=True)), started, ended)


def test_a_promise_is_kept_by_its_end_and_a_start_within_a_third_of_the_wait() -> None:
    found = score(
        [
            outcome(10.0, 12.0, 22.0, 20.0, 25.0, 30.0),
            outcome(10.0, 20.0, 19.0, 20.0, 25.0, 30.0),
            outcome(1.0, 1.1, 29.0, 20.0, 25.0, 30.0),
        ]
    )
    assert found.jobs == 3
    assert found.kept == pytest.approx({0.8: 1 / 3, 0.9: 2 / 3, 0.95: 1.0})
    assert found.near_starts == pytest.approx(2 / 3)
    assert (found.waited, found.near_starts_of_waited) == (2, 0.5)
    assert score([]).near_starts is None


def test_each_job_that_waits_is_told_once_and_scored_when_it_has_ended(store: Store, ana: Caller) -> None:
    for seconds in (11.5, 12.0, 12.5, 12.2):
        ran(store, ana, seconds)
    mine = submit(store, ana, 6)
    keeper = PromiseKeeper(store, 8, clock=lambda: 0.0)
    assert keeper.turn() == 6
    assert keeper.turn() == 0
    with store.read() as tx:
        told = {row.job_id: row for row in tx.execute(select(promises))}
    last = told[mine[-1]]
    assert 20 < (last.start_at - NOON).total_seconds() < 30
    assert last.start_at < last.end_80 < last.end_90 < last.end_95
    with store.write() as tx:
        for number, job in enumerate(mine):
            start = NOON + timedelta(seconds=12 * (number // 2))
            times = {"held_at": start, "started_at": start, "ended_at": start + timedelta(seconds=12)}
            tx.execute(update(jobs).where(jobs.c.id == job).values(state="finished", attempt=1, **times))
    with store.read() as tx:
        found = score_promises(tx, ana)
    assert found.jobs == 6
    assert found.kept[0.95] == 1.0
    assert found.near_starts_of_waited == 1.0


def test_the_gap_between_two_jobs_counts_for_those_behind_them() -> None:
    def at(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    held = [("here", at(0.0), at(10.0 * k + 1.0), at(10.0 * k + 10.0)) for k in range(5)]
    assert typical_gap(held) == pytest.approx(1.0)
    assert typical_gap([]) == 0.0


def test_what_jobs_of_a_kind_have_in_common_does_not_cancel_out_over_a_long_queue() -> None:
    def deviation(spread: Spread) -> float:
        many = [waiting(f"j{i}", spread) for i in range(40)]
        now: QueueNow = queue(many, [device(cpus=1.0)])
        found = expected_starts(now, np.random.default_rng(0), plays=60)
        return float(np.log(found[JobId("j39")].start).std())

    assert deviation(Spread(10.0, 0.3)) < 0.1 < deviation(Spread(10.0, 0.3, 0.3, "same"))


def test_promises_that_were_too_cautious_or_too_bold_correct_the_next() -> None:
    raw = Forecast(50.0, 100.0, {"end_80": 120.0, "end_90": 130.0, "end_95": 140.0})
    rng = np.random.default_rng(0)
    late = [ForecastOutcome(raw, 60.0, float(x)) for x in 150.0 * rng.lognormal(0.0, 0.1, size=400)]
    learned = corrected_by(late)
    told = learned.applied(raw)
    assert 55.0 < told.start < 62.0
    for name, level in LEVELS.items():
        kept = np.mean([one.ended <= told.ends[name] for one in late])
        assert kept == pytest.approx(level, abs=0.04)
    assert corrected_by([]).applied(raw).ends == pytest.approx(raw.ends)
    never = Forecast(np.inf, np.inf, dict.fromkeys(LEVELS, np.inf))
    assert learned.applied(never) == never

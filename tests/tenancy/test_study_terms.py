"""What people may say about a study holds on the live pool: weight, deadline, budget, pause; apps beside it go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.tenancy.test_keeper import ANY, app
from tests.tenancy.test_places import pool_of
from tests.tenancy.test_terms import Stopped

from easel.errors import InvalidInput, QuotaExhausted
from easel.flow.studies.declare import create_study
from easel.flow.terms import set_limits, set_study_terms
from easel.records.job import Job
from easel.records.standing import Standing
from easel.records.tenant import TermLimits
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest
from easel.wire.study import study_fields

STUDY = """
name: digits
job:
  command: sh -c 'echo "[EASEL_METRIC] accuracy=0.{rate}"'
  resources: {vcpu: 0.5, memory_mb: 64}
space:
  - {name: rate, type: ordinal, values: [1, 2, 3, 4, 5, 6, 7, 8]}
goal: {maximise: accuracy, budget: {count: 8}}
strategy: grid
workers: 2
"""


def study(engine: EngineUnderTest) -> str:
    caller, asked = engine.caller(), study_fields(STUDY)
    with engine.store.write() as tx:
        return create_study(tx, caller, asked.name, asked.spec()).id


def say(engine: EngineUnderTest, **wanted: Any) -> None:
    with engine.store.write() as tx:
        set_study_terms(tx, engine.caller(), "digits", wanted)


def points(started: list[Job]) -> list[Job]:
    return [job for job in started if job.spec.run.kind != "trial"]


def obstacle(pool: PoolUnderTest, tenant: str) -> Standing | None:
    with pool.store.read() as tx:
        pool.keeper.follow(tx)
    found = pool.keeper.obstacles.get(tenant)
    return None if found is None else found.kind


def test_a_paused_study_starts_no_point_until_it_is_resumed_and_an_app_goes_on(
    engine: EngineUnderTest,
) -> None:
    digits = study(engine)
    say(engine, paused=True)
    app(engine, "mine", 0)
    pool = pool_of(engine, vcpu=2.0)
    started = pool.turn()
    assert started
    assert points(started) == []
    assert obstacle(pool, digits) is Standing.PAUSED
    for job in started:
        pool.end(job, 0.6)
    say(engine, paused=False)
    assert points(pool.turn())
    assert obstacle(pool, digits) is None


def test_a_study_whose_deadline_has_passed_starts_no_point_whoever_looks(engine: EngineUnderTest) -> None:
    digits = study(engine)
    clock = Stopped(engine.store.clock)
    engine.store.clock = clock
    with pytest.raises(InvalidInput, match="has passed already"):
        say(engine, deadline=clock.now() - timedelta(seconds=1))
    say(engine, deadline=clock.now() + timedelta(hours=1))
    pool = pool_of(engine, vcpu=2.0)
    assert points(pool.turn())
    for job in pool.waiting():
        pool.end(job)
    clock.by = 3601.0
    pool.restart()
    assert pool.turn() == []
    assert obstacle(pool, digits) is Standing.DEADLINE_PASSED
    say(engine, deadline=None)
    assert points(pool.turn())


def test_a_study_with_a_budget_of_zero_starts_no_point_and_an_app_goes_on(engine: EngineUnderTest) -> None:
    digits = study(engine)
    say(engine, budget=0)
    app(engine, "mine", 0)
    pool = pool_of(engine, vcpu=2.0)
    started = pool.turn()
    assert started
    assert points(started) == []
    assert obstacle(pool, digits) is Standing.OWN_BUDGET_SPENT
    for job in started:
        pool.end(job, 0.6)
    say(engine, budget=None)
    assert points(pool.turn())


@pytest.mark.parametrize("weight", [0.0, 1e6])
def test_a_study_of_weight_zero_waits_for_an_app_and_a_heavy_one_does_not(
    engine: EngineUnderTest, weight: float
) -> None:
    study(engine)
    say(engine, weight=weight)
    app(engine, "mine", 0)
    pool = pool_of(engine, vcpu=4.0)
    started = pool.turn()
    assert bool(points(started)) is (weight > 0)
    assert len(points(started)) < len(started)
    decision = pool.keeper.decide(ANY)
    assert np.isfinite(decision.reasons.acquisition)  # type: ignore[union-attr]


def test_an_admins_limits_hold_for_studies_too(engine: EngineUnderTest) -> None:
    study(engine)
    with engine.store.write() as tx:
        set_limits(tx, engine.caller(), TermLimits(2.0, 5_000_000))
    with pytest.raises(QuotaExhausted, match="go up to 2, not 3"):
        say(engine, weight=3)
    with pytest.raises(QuotaExhausted, match="go up to 5"):
        say(engine, budget=6)
    say(engine, weight=2, budget=5)

"""When waiting jobs are expected to start, from the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import update

from easel.declare.job import Command, JobSpec, Trial
from easel.declare.resources import Resources, Room
from easel.declare.roles import Role
from easel.flow.jobs.expected import expected_times, queue_as_it_is
from easel.flow.jobs.shares import keep_for_apps
from easel.flow.jobs.submit import submit_job
from easel.ids import JobId, TokenId
from easel.records.identity import Caller
from easel.store import devices, identity
from easel.store.engine import Store
from easel.store.schema.jobs import jobs
from easel.testing.clock import FakeClock

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SPEC = JobSpec(name="twelve", run=Command(("true",)), resources=Resources(1.0, 512))


@pytest.fixture(autouse=True)
def clock(store: Store) -> FakeClock:
    made = FakeClock(NOON)
    store.clock = made
    return made


@pytest.fixture
def ana(store: Store) -> Caller:
    with store.write() as tx:
        project = identity.add_project(tx, "lab", "")
        user = identity.add_user(tx, "ana", home=project.id, platform_admin=False)
        identity.put_member(tx, project.id, user.id, Role.ADMIN)
        devices.seen(tx, "here", "local", Room(2.0, 4096), {})
    return Caller(user, TokenId("tok_test"), project, Role.ADMIN)


def submit(store: Store, who: Caller, count: int, **fields: object) -> list[JobId]:
    with store.write() as tx:
        made = [submit_job(tx, who, replace(SPEC, **fields)) for _ in range(count)]  # type: ignore[arg-type]
    return [job.id for job in made]


def ran(store: Store, who: Caller, seconds: float, **fields: object) -> None:
    for job in submit(store, who, 1, **fields):
        times = {"started_at": NOON - timedelta(seconds=seconds), "ended_at": NOON}
        with store.write() as tx:
            tx.execute(update(jobs).where(jobs.c.id == job).values(state="finished", **times))


def test_twenty_jobs_of_twelve_seconds_on_two_cores_take_two_minutes(store: Store, ana: Caller) -> None:
    for seconds in (11.5, 12.0, 12.5, 12.2):
        ran(store, ana, seconds)
    waiting = submit(store, ana, 20)
    (late,) = submit(store, ana, 1, name="late")
    with store.read() as tx:
        found = expected_times(tx, [*waiting, late], 8, np.random.default_rng(0))
    first, last = found[waiting[0]], found[late]
    assert first.start == NOON
    assert last.start is not None
    assert last.end_by is not None
    assert 110 < (last.start - NOON).total_seconds() < 130
    assert (last.end_by - NOON).total_seconds() > 120


def test_a_job_takes_as_long_as_those_of_its_name_and_a_strange_one_may_take_any_time(
    store: Store, ana: Caller
) -> None:
    for _ in range(5):
        ran(store, ana, 100.0, name="long")
        ran(store, ana, 1.0, name="short")
    submit(store, ana, 1, name="long")
    submit(store, ana, 1, name="short")
    submit(store, ana, 1, name="strange")
    with store.read() as tx:
        long, short, strange = (job.spread for job in queue_as_it_is(tx, 8).waiting)
    assert long.median == pytest.approx(100.0)
    assert short.median == pytest.approx(1.0)
    assert strange.whole_sd > 5 * long.whole_sd


def test_what_no_connected_device_can_hold_has_no_expected_start(store: Store, ana: Caller) -> None:
    with store.write() as tx:
        devices.seen(tx, "second", "local", Room(2.0, 4096), {})
        devices.away(tx, "second")
    (pair,) = submit(store, ana, 1, workers=2)
    with store.read() as tx:
        assert expected_times(tx, [pair], 8, np.random.default_rng(0))[pair].start is None


def test_what_an_admin_keeps_for_apps_is_foretold_to_neither_jobs_nor_newcomers(
    store: Store, ana: Caller
) -> None:
    """Of two cores a trial holds one: with half the pool kept for apps, jobs have the other."""
    for _ in range(5):
        ran(store, ana, 10.0, name="short")
    (trial,) = submit(store, ana, 1, name="short", run=Trial("easel.flow.apps.trial:learn", {}))
    holds = {"state": "running", "device": "here", "started_at": NOON, "launched_at": NOON}
    with store.write() as tx:
        tx.execute(update(jobs).where(jobs.c.id == trial).values(**holds))
    waiting = submit(store, ana, 4, name="short")

    def last_start() -> float:
        with store.read() as tx:
            found = expected_times(tx, waiting, 8, np.random.default_rng(0))[waiting[-1]].start
        assert found is not None
        return (found - NOON).total_seconds()

    shared = last_start()
    with store.write() as tx:
        keep_for_apps(tx, ana, 0.5)
        assert queue_as_it_is(tx, 8).for_apps == 0.5
    assert shared < 25 < last_start()
    with store.write() as tx:
        keep_for_apps(tx, ana, 0.0)
    assert last_start() == pytest.approx(shared)


def test_what_ran_on_a_fast_device_takes_longer_elsewhere(store: Store, ana: Caller) -> None:
    with store.write() as tx:
        devices.seen(tx, "quick", "local", Room(1.0, 4096), {"label speed": "4"})
    for _ in range(5):
        ran(store, ana, 3.0, name="short")
    with store.write() as tx:
        tx.execute(update(jobs).values(device="quick"))
    submit(store, ana, 1, name="short")
    with store.read() as tx:
        now = queue_as_it_is(tx, 8)
    assert {device.name: device.speed for device in now.devices} == {"here": 1.0, "quick": 4.0}
    assert now.waiting[0].spread.median == pytest.approx(12.0)

"""Jobs that left their queue for a device which has gone since go back, and nobody waits behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from easel.declare.resources import Resources, Room
from easel.flow.budgets import set_budget
from easel.flow.jobs import stranded as module
from easel.flow.jobs.control import kill_job
from easel.price.budget import Budget
from easel.records.job import JobState
from easel.store import devices, job_queues, jobs
from easel.store.events import events_after
from easel.testing.engine import EngineUnderTest, running


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        made.caller()
        yield made


ALL = Resources(2.0, 256)
NORTH = {"site": "north"}


def test_what_was_let_through_for_a_device_that_left_goes_back_and_the_next_runs(
    engine: EngineUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = engine.controller()
    long = engine.submit("sleep", "600", resources=ALL)
    engine.turn_until(controller, lambda: engine.job(long).state is JobState.RUNNING)
    with engine.store.write() as tx:
        devices.seen(tx, "second", "remote", Room(64.0, 64_000), {"label site": "north"})
    others = [engine.submit("true", resources=ALL, wants=NORTH) for _ in range(3)]

    def states() -> set[JobState]:
        return {engine.job(job).state for job in others}

    monkeypatch.setattr(module, "AFTER", timedelta())
    engine.turn_until(controller, lambda: states() == {JobState.LAUNCHING}, 20)
    assert module.stranded(engine.store) == [], "while the device is there they are left alone"
    with engine.store.write() as tx:
        devices.away(tx, "second")
    engine.turn_until(controller, lambda: states() == {JobState.QUEUED}, 20)
    again = [engine.job(job) for job in others]
    with engine.store.read() as tx:
        said = [event.subject for event in events_after(tx, None, 0, 10_000) if event.kind == "job.put_back"]
        rows = jobs.rows(tx, [job.id for job in others])
        assert job_queues.launching_count(tx) == 0
    assert sorted(said) == sorted(job.id for job in others)
    assert {(row.lost, row.failed) for row in rows.values()} == {(0, 0)}, "at no cost"
    usual = engine.submit("true", resources=ALL)
    with engine.store.write() as tx:
        kill_job(tx, engine.caller(), long.id)
    (done,) = engine.finish(controller, usual)
    assert done.state is JobState.FINISHED
    assert {engine.job(job).state for job in again} == {JobState.QUEUED}


def test_what_was_let_through_and_a_budget_cannot_pay_any_more_waits_until_it_is_raised(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller()
    long = engine.submit("sleep", "600", resources=ALL)
    engine.turn_until(controller, lambda: engine.job(long).state is JobState.RUNNING)
    with engine.store.write() as tx:
        devices.seen(tx, "second", "remote", Room(64.0, 64_000), {"label site": "north"})
    other = engine.submit("true", resources=ALL)
    engine.turn_until(controller, lambda: engine.job(other).state is JobState.LAUNCHING, 20)
    with engine.store.write() as tx:
        set_budget(tx, engine.caller(), Budget(10))
    engine.turn_until(controller, lambda: engine.job(other).state is JobState.QUEUED, 20)
    with engine.store.write() as tx:
        assert not jobs.rows(tx, [other.id])[other.id].kill_requested
        set_budget(tx, engine.caller(), None)
        kill_job(tx, engine.caller(), long.id)
    (done,) = engine.finish(controller, other)
    assert done.state is JobState.FINISHED


def test_who_has_only_just_been_let_through_is_left_alone(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    long = engine.submit("sleep", "600", resources=ALL)
    engine.turn_until(controller, lambda: engine.job(long).state is JobState.RUNNING)
    with engine.store.write() as tx:
        devices.seen(tx, "second", "remote", Room(64.0, 64_000), {"label site": "north"})
    other = engine.submit("true", resources=ALL, wants=NORTH)
    engine.turn_until(controller, lambda: engine.job(other).state is JobState.LAUNCHING, 20)
    with engine.store.write() as tx:
        devices.away(tx, "second")
    assert module.stranded(engine.store) == []

"""A device is emptied: nothing new begins, what runs goes on until the deadline, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from easel.declare.job import RetryRule
from easel.declare.resources import Resources, Room
from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.operate import drain as drains
from easel.flow.operate.faults import check_workers
from easel.flow.operate.health import Severity
from easel.records.attempt import EndReason
from easel.records.device import Drain
from easel.records.job import JobState
from easel.run.lifecycle import Dequeued, Ended, Gone, KillRequested, replay
from easel.store import devices, reservations
from easel.testing.engine import EngineUnderTest, running

HALF, ROOM = Resources(1.0, 256), Room(1.0, 1024)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


def test_a_stopped_attempt_of_a_job_that_nobody_killed_is_tried_again_at_no_cost() -> None:
    never = RetryRule(lost=0, failed=0)
    for end in (Ended(1, "stopped", end=EndReason.STOPPED), Gone(1, "stopped", EndReason.STOPPED)):
        life = replay(never, [Dequeued(), end])
        assert (life.state, life.lost, life.failed) == (JobState.QUEUED, 0, 0)
        assert replay(never, [Dequeued(), KillRequested("by ana"), end]).state is JobState.KILLED


def test_a_drained_device_begins_nothing_and_is_emptied_at_the_deadline(engine: EngineUnderTest) -> None:
    ana, controller = engine.caller(), engine.controller()
    script = 'case "$EASEL_ATTEMPT" in *.2) ;; *) exec sleep 600 ;; esac'
    running_job = engine.submit("sh", "-c", script, resources=HALF, retry=RetryRule(lost=0, failed=0))
    engine.turn_until(controller, lambda: engine.job(running_job).state is JobState.RUNNING)
    with engine.store.write() as tx:
        found = drains.drain(tx, ana, "local", tx.now + timedelta(hours=1), "new memory")
    assert found.drain is not None
    controller._empty_drained()
    later = engine.submit("true", resources=HALF)
    for _ in range(50):
        controller.turn()
    assert engine.job(later).state is JobState.QUEUED
    assert engine.job(running_job).state is JobState.RUNNING
    with engine.store.write() as tx:
        devices.set_drain(tx, "local", Drain(tx.now, tx.now, "new memory"))
    engine.turn_until(controller, lambda: engine.job(running_job).state is JobState.QUEUED)
    with engine.store.read() as tx:
        assert drains.running_on(tx) == {}
    with engine.store.write() as tx:
        drains.undrain(tx, ana, "local")
    controller._empty_drained()
    ended = engine.finish(controller, running_job, later)
    assert [job.state for job in ended] == [JobState.FINISHED] * 2
    assert (ended[0].attempt, ended[1].attempt) == (2, 1)


def test_what_waits_on_the_device_goes_back_into_the_queue(engine: EngineUnderTest) -> None:
    engine.caller()
    controller = engine.controller()
    first = [engine.submit("sleep", "600", resources=HALF) for _ in range(2)]
    engine.turn_until(controller, lambda: all(engine.job(j).state is JobState.RUNNING for j in first))
    waits = engine.submit("true", resources=HALF)
    engine.turn_until(controller, lambda: engine.job(waits).state is JobState.LAUNCHING)
    with engine.store.write() as tx:
        drains.drain(tx, engine.caller(), "local", None, "")
    engine.turn_until(controller, lambda: engine.job(waits).state is JobState.QUEUED)


def test_drains_that_make_no_sense_are_refused(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        devices.seen(tx, "slurm/0", "slurm", ROOM, {})
        devices.seen(tx, "box", "remote", ROOM, {})
        with pytest.raises(NotFound, match="easel devices"):
            drains.drain(tx, ana, "nowhere", None, "")
        with pytest.raises(InvalidInput, match="drain the machine there"):
            drains.drain(tx, ana, "slurm/0", None, "")
        with pytest.raises(InvalidInput, match="has passed"):
            drains.drain(tx, ana, "box", tx.now, "")


def test_a_device_that_is_gone_for_good_is_removed_with_its_reservations(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        devices.seen(tx, "box", "remote", ROOM, {})
        reservations.add(tx, "box", ana.project_id, tx.now, tx.now + timedelta(hours=1), ana.user.id)
        with pytest.raises(Conflict, match="stop its worker first"):
            drains.remove(tx, ana, "box")
        devices.away(tx, "box")
        pool = devices.machines(tx)
        assert "easel devices --remove" in check_workers(pool, tx.now).detail
        drains.remove(tx, ana, "box")
        assert "box" not in [device.name for device in devices.list_devices(tx)]
        assert reservations.to_come(tx) == []
        assert check_workers(devices.machines(tx), tx.now).severity is Severity.OK
        with pytest.raises(NotFound, match="easel devices"):
            drains.remove(tx, ana, "box")


def test_a_device_with_jobs_that_are_not_given_up_yet_stays(engine: EngineUnderTest) -> None:
    ana, controller = engine.caller(), engine.controller()
    job = engine.submit("sleep", "600", resources=HALF)
    engine.turn_until(controller, lambda: engine.job(job).state is JobState.RUNNING)
    with engine.store.write() as tx:
        devices.away(tx, "local")
        with pytest.raises(Conflict, match="not given up yet"):
            drains.remove(tx, ana, "local")

"""A device is kept for one project: others begin nothing there, what runs may end, what may be preempted stops."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from easel.declare.resources import Resources, Room
from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.jobs.waiting import why_waiting
from easel.flow.operate import reserve as reserving
from easel.records.job import JobState
from easel.store import devices
from easel.testing.engine import EngineUnderTest, running

ONE = Resources(1.0, 256)
HOUR = timedelta(hours=1)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        made.caller()
        made.caller("ben", "bio")
        yield made


def keep_for_bio(engine: EngineUnderTest) -> str:
    with engine.store.write() as tx:
        return reserving.reserve(tx, engine.caller(), "local", "bio", tx.now, tx.now + HOUR).id


def test_what_runs_may_end_what_may_be_preempted_stops_and_only_the_project_begins(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller()
    script = 'case "$EASEL_ATTEMPT" in *.2) ;; *) exec sleep 600 ;; esac'
    stays = engine.submit("sleep", "600", resources=ONE)
    stops = engine.submit("sh", "-c", script, resources=ONE, preemptible=True)
    both = (stays, stops)
    engine.turn_until(controller, lambda: all(engine.job(j).state is JobState.RUNNING for j in both))
    made = keep_for_bio(engine)
    others = engine.submit("true", resources=ONE)
    engine.turn_until(controller, lambda: engine.job(stops).state is JobState.QUEUED)
    (own,) = engine.finish(controller, engine.submit("true", who="ben", resources=ONE))
    assert own.state is JobState.FINISHED
    assert engine.job(stays).state is JobState.RUNNING, "it did not say that it may be stopped"
    assert engine.job(others).state is JobState.QUEUED
    with engine.store.read() as tx:
        assert "is reserved until" in (why_waiting(tx, engine.job(others), 8) or "")
    with engine.store.write() as tx:
        reserving.cancel(tx, engine.caller(), made)
    ended = engine.finish(controller, others, stops)
    assert [job.state for job in ended] == [JobState.FINISHED] * 2


def test_reservations_that_make_no_sense_are_refused_and_names_of_other_projects_are_not_told(
    engine: EngineUnderTest,
) -> None:
    ana, ben = engine.caller(), engine.caller("ben", "bio")
    with engine.store.write() as tx:
        devices.seen(tx, "local", "local", Room(2.0, 4096), {})
        now = tx.now
        with pytest.raises(NotFound, match="no device"):
            reserving.reserve(tx, ana, "nowhere", "bio", now, now + HOUR)
        with pytest.raises(NotFound, match="no project"):
            reserving.reserve(tx, ana, "local", "nobody", now, now + HOUR)
        for start, end in ((now, now), (now - 2 * HOUR, now - HOUR)):
            with pytest.raises(InvalidInput, match="ends after it begins"):
                reserving.reserve(tx, ana, "local", "bio", start, end)
        reserving.reserve(tx, ana, "local", "bio", now, now + HOUR)
        with pytest.raises(Conflict, match="is reserved for bio"):
            reserving.reserve(tx, ana, "local", "astro", now + HOUR / 2, now + 2 * HOUR)
        reserving.reserve(tx, ana, "local", "astro", now + HOUR, now + 2 * HOUR)
        assert [one.project for one in reserving.to_come(tx, ben)] == ["bio", ""]
        with pytest.raises(NotFound, match="easel reservations ls"):
            reserving.cancel(tx, ana, "rsv_none")

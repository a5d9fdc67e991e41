"""A job that may be preempted gives way to somebody with a better claim, and goes on from its checkpoint folder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from easel.declare.job import RetryRule
from easel.declare.resources import Resources
from easel.flow.jobs.preempt import preempting
from easel.records.job import JobState
from easel.run.launch import checkpoint_folder
from easel.run.share import HALF_LIFE_S
from easel.store.schema.jobs import jobs
from easel.testing.engine import EngineUnderTest, running, until

ALL = Resources(2.0, 256)
GOES_ON = """
if [ -e "$EASEL_CHECKPOINT/step" ]; then echo "from $(cat "$EASEL_CHECKPOINT/step")" > output/end; exit; fi
echo 7 > "$EASEL_CHECKPOINT/step"
exec sleep 600
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


def waited(engine: EngineUnderTest, job_id: str, seconds: float) -> None:
    with engine.store.write() as tx:
        at = tx.now - timedelta(seconds=seconds)
        tx.execute(update(jobs).where(jobs.c.id == job_id).values(submitted_at=at))


def test_it_is_stopped_tried_again_at_no_cost_and_finds_its_checkpoint(engine: EngineUnderTest) -> None:
    engine.caller()
    engine.caller("ben", "bio")
    controller = engine.controller()
    never = RetryRule(lost=0, failed=0)
    long = engine.submit("sh", "-c", GOES_ON, resources=ALL, retry=never, preemptible=True)
    kept = checkpoint_folder(engine.home, long.id) / "step"
    engine.turn_until(controller, lambda: kept.exists() and engine.job(long).state is JobState.RUNNING)
    short = engine.submit("true", who="ben", resources=ALL)
    assert preempting(engine.store, 8, HALF_LIFE_S) == [], "who has just come waits a little"
    waited(engine, short.id, 60.0)
    first, second = engine.finish(controller, short, long)
    assert (first.state, first.attempt) == (JobState.FINISHED, 1)
    assert (second.state, second.attempt) == (JobState.FINISHED, 2)
    assert first.ended_at is not None
    assert second.started_at is not None
    assert first.ended_at <= second.started_at
    until(lambda: not kept.exists())  # of a job that is over nothing is kept


def test_a_job_that_did_not_say_so_runs_to_its_end(engine: EngineUnderTest) -> None:
    engine.caller()
    engine.caller("ben", "bio")
    controller = engine.controller()
    long = engine.submit("sleep", "600", resources=ALL)
    engine.turn_until(controller, lambda: engine.job(long).state is JobState.RUNNING)
    waited(engine, engine.submit("true", who="ben", resources=ALL).id, 60.0)
    assert preempting(engine.store, 8, HALF_LIFE_S) == []

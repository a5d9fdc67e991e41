"""Jobs that can never start are refused; those that wait say why."""

from __future__ import annotations

import pytest

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.errors import InvalidInput
from easel.flow.jobs.control import set_queue
from easel.flow.jobs.submit import submit_job
from easel.flow.jobs.waiting import why_waiting
from easel.testing.engine import EngineUnderTest

SPEC = JobSpec("wait", Command(("true",)), resources=Resources(0.5, 64))


def test_labels_and_workers_that_no_device_has_are_refused_at_once(engine: EngineUnderTest) -> None:
    engine.finish(engine.controller(), engine.submit("true"))  # its device has said that it is there
    with engine.store.write() as tx:
        with pytest.raises(InvalidInput, match="nope=1"):
            submit_job(tx, engine.people["ana"], JobSpec("a", SPEC.run, wants={"nope": "1"}))
        with pytest.raises(InvalidInput, match="2 devices side by side, and the pool has 1"):
            submit_job(tx, engine.people["ana"], JobSpec("b", SPEC.run, workers=2))


def test_a_queued_job_says_what_it_waits_for(engine: EngineUnderTest) -> None:
    ana = engine.people["ana"]
    with engine.store.write() as tx:
        job = submit_job(tx, ana, SPEC)
        assert why_waiting(tx, job, 4) == "it is next in turn"
        assert why_waiting(tx, job, 0) == "0 of your jobs are active, and at most 0 may be at once"
        set_queue(tx, ana, None, paused=True)
        assert "paused" in (why_waiting(tx, job, 4) or "")

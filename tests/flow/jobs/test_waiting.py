"""Jobs that can never start are refused; those that wait say why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources, Room
from easel.errors import InvalidInput
from easel.flow.jobs.control import set_queue
from easel.flow.jobs.shares import charge, set_share
from easel.flow.jobs.submit import submit_job
from easel.flow.jobs.waiting import WaitingReasons, why_waiting
from easel.flow.why import of_job
from easel.store import devices
from easel.store.schema.jobs import jobs as table
from easel.testing.engine import EngineUnderTest

SPEC = JobSpec("wait", Command(("true",)), resources=Resources(0.5, 64))


def test_labels_and_workers_that_no_device_has_are_refused_at_once(engine: EngineUnderTest) -> None:
    engine.finish(engine.controller(), engine.submit("true"))  # its device has said that it is there
    with engine.store.write() as tx:
        with pytest.raises(InvalidInput, match="nope=1"):
            submit_job(tx, engine.people["ana"], JobSpec("a", SPEC.run, wants={"nope": "1"}))
        with pytest.raises(InvalidInput, match="2 devices side by side, and the pool has 1"):
            submit_job(tx, engine.people["ana"], JobSpec("b", SPEC.run, workers=2))


def test_a_price_that_no_device_has_is_refused_on_slurm_too(engine: EngineUnderTest) -> None:
    ana = engine.people["ana"]
    with engine.store.write() as tx:
        devices.seen(tx, "slurm/0", "slurm", Room(1.0, 4096), {})
        assert submit_job(tx, ana, replace(SPEC, wants={"rack": "1"})).spec.wants == {"rack": "1"}
        for name, value in (("price", "0.001"), ("terms", "spot")):
            with pytest.raises(InvalidInput, match=f"no device of the pool has {name}={value}"):
                submit_job(tx, ana, replace(SPEC, wants={name: value}))


def test_a_queued_job_says_what_it_waits_for(engine: EngineUnderTest) -> None:
    ana = engine.people["ana"]
    with engine.store.write() as tx:
        job = submit_job(tx, ana, SPEC)
        devices.seen(tx, "core", "local", Room(1.0, 4096), {})
        assert why_waiting(tx, job, 4) == "it is next in turn"
        behind, needing = submit_job(tx, ana, SPEC), submit_job(tx, ana, SPEC, after=[job.id])
        reasons = WaitingReasons(tx, 4, [job, behind, needing])
        assert [reasons.of(one) for one in (job, behind, needing)] == [
            "it is next in turn",
            "1 job of its owner's is ahead of it in the queue",
            f"it waits for {job.id}",
        ]
        assert of_job(tx, needing, 4).sentence.startswith(f"waits for 1 other job to finish: {job.id}")
        assert why_waiting(tx, job, 0) == "0 of your jobs are active, and at most 0 may be at once"
        set_queue(tx, ana, None, paused=True)
        assert "paused" in (why_waiting(tx, job, 4) or "")


def test_whoever_is_next_hears_who_holds_the_room(engine: EngineUnderTest) -> None:
    ana, ben = engine.people["ana"], engine.caller("ben")
    eve = engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        devices.seen(tx, "core", "local", Room(4.0, 4096), {})
        runs = [submit_job(tx, ana, replace(SPEC, name=f"train {k}")) for k in range(3)]
        foreign = submit_job(tx, eve, replace(SPEC, name="secret"))
        job = submit_job(tx, ben, SPEC)
        held = {"state": "running", "held_at": tx.now, "device": "core"}
        tx.execute(update(table).where(table.c.id == runs[0].id).values(held))
        assert why_waiting(tx, job, 4) == "it is next in turn; now 'train 0' runs"
        tx.execute(update(table).where(table.c.id.in_([*(one.id for one in runs), foreign.id])).values(held))
        told = why_waiting(tx, job, 4) or ""
        assert told.endswith("1 more of this project and 1 job of other projects run")
        assert "secret" not in told


def test_a_job_that_waits_for_a_missing_device_says_so(engine: EngineUnderTest) -> None:
    with engine.store.write() as tx:
        devices.seen(tx, "core", "local", Room(1.0, 4096), {})
        devices.seen(tx, "second", "local", Room(1.0, 4096), {})
        job = submit_job(tx, engine.people["ana"], replace(SPEC, workers=2))
        devices.away(tx, "second")
        told = "1 of the devices that are connected could run it, and it needs 2"
        assert why_waiting(tx, job, 4) == told
        assert of_job(tx, job, 4).sentence == f"waits in the queue: {told}"


def test_a_job_that_fair_share_holds_back_says_who_goes_first_and_why(engine: EngineUnderTest) -> None:
    ana, ben = engine.people["ana"], engine.caller("ben")
    eve = engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        devices.seen(tx, "core", "local", Room(1.0, 4096), {})
        job = submit_job(tx, ana, SPEC)
        assert "the first of its owner's queue; it starts when" in of_job(tx, job, 4).sentence
        submit_job(tx, ben, SPEC)
        charge(tx, {(ana.project_id, ana.user.id): 3600.0})
        told = of_job(tx, job, 4).sentence
        assert "ben goes first, who has used less of the pool for their weight" in told
        submit_job(tx, eve, SPEC)
        told = of_job(tx, job, 4).sentence
        assert "somebody of another project goes first, who is of a project that has used less" in told
        set_share(tx, ana, ben.user.id, 1.0, priority=5)
        assert "ben goes first, who has a higher priority" in of_job(tx, job, 4).sentence

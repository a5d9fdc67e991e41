"""Where many jobs are and what came of them, however many are asked for at once."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update

from easel.declare.job import Command, JobSpec
from easel.ids import JobId, ProjectId, UserId
from easel.records.attempt import EndReason
from easel.records.job import JobState
from easel.store import job_outcomes, job_placements, jobs
from easel.store.engine import Store, Tx
from easel.store.job_placements import JobPlacement
from easel.store.schema.jobs import jobs as table

LAB, ANA = ProjectId("prj_lab"), UserId("usr_ana")
SPEC = JobSpec(name="test", run=Command(("true",)))
COUNTS = [0, 1, 2, 3, 4, 5, 1000, 1001]
"""None, one, some that fill a statement's places and some that leave places over, and more than one statement holds."""


def add(tx: Tx, count: int) -> list[JobId]:
    new = [jobs.NewJob(JobId(tx.mint("job")), LAB, ANA, SPEC) for _ in range(count)]
    return [job.id for job in jobs.add(tx, new)] if new else []


def change(tx: Tx, job: JobId, **values: object) -> None:
    tx.execute(update(table).where(table.c.id == job).values(**values))


@pytest.mark.parametrize("count", COUNTS)
def test_each_job_that_is_asked_for_is_found_and_no_other(store: Store, count: int) -> None:
    with store.write() as tx:
        asked = add(tx, count)
        add(tx, 2)
        assert job_placements.placements(tx, asked) == dict.fromkeys(asked, JobPlacement(JobState.QUEUED))
        came = job_outcomes.outcomes(tx, asked)
    assert came.keys() == set(asked)
    assert {outcome.state for outcome in came.values()} == ({JobState.QUEUED} if count else set())


def test_jobs_that_do_not_exist_are_left_out_and_one_named_twice_is_told_once(store: Store) -> None:
    with store.write() as tx:
        (job,) = add(tx, 1)
        asked = [JobId("job_none"), job, job, JobId("job_gone"), job]
        assert list(job_placements.placements(tx, asked)) == [job]
        assert list(job_outcomes.outcomes(tx, asked)) == [job]
        assert job_placements.placements(tx, [JobId("job_none")]) == {}
        assert job_outcomes.outcomes(tx, [JobId("job_none")]) == {}


def test_who_only_looks_at_jobs_keeps_nobody_from_changing_them(store: Store) -> None:
    with store.write() as tx:
        (job,) = add(tx, 1)
    with store.read() as reader:
        assert list(jobs.rows(reader, [job])) == [job]
        with store.write() as tx:
            if not store.is_sqlite:
                tx.execute(text("SET LOCAL lock_timeout = '1s'"))
            jobs.change(tx, [(jobs.rows(tx, [job])[job], {"reason": "changed meanwhile"})])


def test_a_placement_is_where_a_job_is_and_who_has_ended_gives_way_to_nobody(store: Store) -> None:
    with store.write() as tx:
        waits, runs, yields, over = asked = add(tx, 4)
        change(tx, runs, state=JobState.RUNNING.value, device="box")
        change(tx, yields, state=JobState.RUNNING.value, device="core", give_way=True)
        change(tx, over, state=JobState.FINISHED.value, device="core", give_way=True)
        assert job_placements.placements(tx, asked) == {
            waits: JobPlacement(JobState.QUEUED),
            runs: JobPlacement(JobState.RUNNING, "box"),
            yields: JobPlacement(JobState.RUNNING, "core", gives_way=True),
            over: JobPlacement(JobState.FINISHED, "core"),
        }


def test_an_outcome_is_all_that_a_job_told(store: Store) -> None:
    with store.write() as tx:
        done, failed, waits = asked = add(tx, 3)
        change(
            tx,
            done,
            state=JobState.FINISHED.value,
            result={"quality": 0.9},
            output_set="test:1",
            usage={"cpu_seconds": 1.0, "peak_memory_mb": 77.0, "wall_seconds": 2.0},
            started_at=tx.now,
            ended_at=tx.now,
        )
        change(tx, failed, state=JobState.FAILED.value, end_reason=EndReason.DEVICE_LOST.value)
        came = job_outcomes.outcomes(tx, asked)
        now = tx.now
    found = came[done]
    assert (found.state, found.result, found.output_set) == (JobState.FINISHED, {"quality": 0.9}, "test:1")
    assert (found.peak_memory_mb, found.started_at, found.ended_at) == (77.0, now, now)
    assert found.user_id == ANA
    assert found.resources == SPEC.resources
    assert (came[failed].state, came[failed].end_reason) == (JobState.FAILED, EndReason.DEVICE_LOST)
    assert (came[waits].result, came[waits].peak_memory_mb, came[waits].end_reason) == (None, None, None)

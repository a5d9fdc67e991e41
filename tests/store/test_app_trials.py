"""Trials that have not been settled, with what came of their jobs, in one look."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from easel.declare.job import Command, JobSpec
from easel.ids import AppId, JobId, ProjectId, UserId
from easel.records.job import JobState
from easel.store import app_trials, jobs
from easel.store.engine import Store, Tx
from easel.store.schema.jobs import jobs as table

FLOWERS, BIRDS = AppId("app_flowers"), AppId("app_birds")
SPEC = JobSpec(name="test", run=Command(("true",)))
COUNTS = [0, 1, 2, 3, 5, 1000, 1001]


def start(tx: Tx, count: int, *apps: AppId) -> list[JobId]:
    """So many trials of these apps, each with its job."""
    new = [
        jobs.NewJob(JobId(tx.mint("job")), ProjectId("prj_lab"), UserId("usr_ana"), SPEC)
        for _ in range(count)
    ]
    made = [job.id for job in jobs.add(tx, new)] if new else []
    for number, job in enumerate(made):
        decision = {"reasons": {"acquisition": float(number)}}
        app_trials.add(tx, apps or (FLOWERS,), job, f"candidate {number}", {"family": "svm"}, decision, 10)
    return made


@pytest.mark.parametrize("count", COUNTS)
def test_trials_come_in_the_order_of_the_decisions_however_their_jobs_are_named(
    store: Store, count: int
) -> None:
    with store.write() as tx:
        asked = start(tx, count)
        start(tx, 2)
        trials, outcomes = app_trials.running_of(tx, asked[::-1])
    assert [one.job_id for one in trials] == asked
    assert [one.name for one in trials] == [f"candidate {number}" for number in range(count)]
    assert outcomes.keys() == set(asked)


def test_a_trial_of_two_apps_is_two_and_its_job_one(store: Store) -> None:
    with store.write() as tx:
        (job,) = start(tx, 1, FLOWERS, BIRDS)
        tx.execute(update(table).where(table.c.id == job).values(state="finished", result={"quality": 0.5}))
        trials, outcomes = app_trials.running_of(tx, [job])
    assert [(one.app_id, one.job_id, one.shared) for one in trials] == [(FLOWERS, job, 2), (BIRDS, job, 2)]
    assert [(one.state, one.result) for one in outcomes.values()] == [(JobState.FINISHED, {"quality": 0.5})]


def test_what_was_settled_is_not_told_again(store: Store) -> None:
    with store.write() as tx:
        settled, open_one = start(tx, 2)
        assert app_trials.end(tx, settled, 0.9, 1.0, "model:1")
        trials, outcomes = app_trials.running_of(tx, [settled, open_one])
    assert [one.job_id for one in trials] == [open_one]
    assert list(outcomes) == [open_one]


def test_a_trial_whose_job_is_gone_is_told_without_an_outcome(store: Store) -> None:
    with store.write() as tx:
        gone, there = start(tx, 2)
        tx.execute(delete(table).where(table.c.id == gone))
        trials, outcomes = app_trials.running_of(tx, [gone, there])
        assert [one.job_id for one in trials] == [gone, there]
        assert list(outcomes) == [there]
        assert app_trials.running_of(tx, [JobId("job_none")]) == ([], {})


def test_trials_are_found_by_how_their_candidates_names_begin(store: Store) -> None:
    with store.write() as tx:
        first, second, other = start(tx, 3, FLOWERS)
        start(tx, 1, BIRDS)
        told = {"family": "ensemble", "settings": {"of": 3}}
        reasons = {"reasons": {"acquisition": 0.0}}
        made = JobId(tx.mint("job"))
        app_trials.add(tx, [FLOWERS], made, "ensemble(of=3)", told, reasons, 10)
        assert [one.job_id for one in app_trials.named(tx, FLOWERS, "ensemble(of=")] == [made]
        assert [one.candidate for one in app_trials.named(tx, FLOWERS, "ensemble(of=")] == [told]
        assert [one.job_id for one in app_trials.named(tx, FLOWERS, "candidate ")] == [first, second, other]
        assert app_trials.named(tx, BIRDS, "ensemble(of=") == []

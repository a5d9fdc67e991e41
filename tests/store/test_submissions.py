"""What stands between a job and its queue is told for the project and the user who ask, and for nobody else."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import delete

from easel.declare.job import Command, JobSpec
from easel.ids import JobId, ProjectId, UserId
from easel.lake.access import Grant, Scope
from easel.records.quota import Quota
from easel.store import billing, job_queues, jobs, quotas
from easel.store.engine import Store, Tx
from easel.store.lake import grants
from easel.store.schema import jobs as schema
from easel.store.submissions import SubmissionLimits, limits

LAB, OTHER = ProjectId("prj_lab"), ProjectId("prj_other")
ANA, BOB = UserId("usr_ana"), UserId("usr_bob")
NOTHING = SubmissionLimits(budget=False, quotas=False, grants=False, queue=False, ever=0)
SPEC = JobSpec(name="test", run=Command(("true",)))


def set_budget(tx: Tx) -> None:
    values = {"limit_micros": 0, "period": "total", "warn_at": [], "hard_stop": False}
    billing.put_budget(tx, LAB, values)


def add_jobs(tx: Tx, count: int, project: ProjectId = LAB) -> None:
    new = [jobs.NewJob(JobId(tx.mint("job")), project, ANA, SPEC) for _ in range(count)]
    jobs.add(tx, new)


def test_a_new_project_has_no_limits_and_its_user_no_queue(store: Store) -> None:
    with store.read() as tx:
        assert limits(tx, LAB, ANA) == NOTHING


def test_a_budget_is_told_while_it_is_set_however_large_or_soft_it_is(store: Store) -> None:
    with store.write() as tx:
        set_budget(tx)
        assert limits(tx, LAB, ANA) == limits(tx, LAB, BOB) == replace(NOTHING, budget=True)
        billing.drop_budget(tx, LAB)
        assert limits(tx, LAB, ANA) == NOTHING


def test_a_quota_of_the_project_or_of_anybody_in_it_is_told_to_all_its_users(store: Store) -> None:
    with store.write() as tx:
        for whom in (quotas.PROJECT, ANA):
            quotas.put(tx, LAB, whom, Quota(jobs=3))
            assert limits(tx, LAB, BOB) == replace(NOTHING, quotas=True)
            quotas.put(tx, LAB, whom, Quota())
            assert limits(tx, LAB, BOB) == NOTHING


def test_grants_are_told_until_the_last_is_removed(store: Store) -> None:
    with store.write() as tx:
        grants.put_grant(tx, LAB, Grant(Scope.PATH, "/secret/", f"user:{ANA}", True, False))
        grants.put_grant(tx, LAB, Grant(Scope.FILE_SET, "Hotpot*", "everyone", True, True))
        assert limits(tx, LAB, BOB) == replace(NOTHING, grants=True)
        grants.remove_grant(tx, LAB, Scope.PATH, "/secret/", f"user:{ANA}")
        assert limits(tx, LAB, BOB) == replace(NOTHING, grants=True)
        grants.remove_grant(tx, LAB, Scope.FILE_SET, "Hotpot*", "everyone")
        assert limits(tx, LAB, BOB) == NOTHING


def test_a_queue_is_the_users_own(store: Store) -> None:
    with store.write() as tx:
        job_queues.set_queue(tx, LAB, job_queues.PROJECT, max_active=2, paused=False)
        assert limits(tx, LAB, ANA) == NOTHING, "the settings of the project are nobody's queue"
        job_queues.open_queue(tx, LAB, ANA)
        assert limits(tx, LAB, ANA) == replace(NOTHING, queue=True)
        assert limits(tx, LAB, BOB) == limits(tx, OTHER, ANA) == NOTHING


def test_jobs_of_all_projects_are_counted_and_never_too_few(store: Store) -> None:
    with store.write() as tx:
        add_jobs(tx, 3)
        add_jobs(tx, 2, OTHER)
        assert limits(tx, LAB, BOB) == replace(NOTHING, ever=5)
        tx.execute(delete(schema.jobs).where(schema.jobs.c.project_id == LAB))
        assert limits(tx, LAB, BOB).ever == 5
        add_jobs(tx, 1)
        assert limits(tx, LAB, BOB).ever == 6


def test_what_one_project_has_says_nothing_of_another(store: Store) -> None:
    with store.write() as tx:
        set_budget(tx)
        quotas.put(tx, LAB, quotas.PROJECT, Quota(gpu_hours=1.0))
        grants.put_grant(tx, LAB, Grant(Scope.PATH, "/", "everyone", True, True))
        job_queues.open_queue(tx, LAB, ANA)
        assert limits(tx, LAB, ANA) == SubmissionLimits(True, True, True, True, 0)
        assert limits(tx, OTHER, ANA) == NOTHING

"""What a submission is limited by holds, though nothing is asked where nothing was set."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.errors import Denied, QuotaExhausted
from easel.flow.budgets import set_budget
from easel.flow.jobs.submit import Submission, submit_job, submit_jobs
from easel.flow.lake.grant import put_grant
from easel.flow.quotas import set_quota
from easel.ids import TokenId
from easel.lake.access import Scope
from easel.price.budget import Budget
from easel.records.identity import Caller
from easel.records.quota import Quota
from easel.store import identity, job_queues
from easel.store.engine import Store
from easel.store.schema.jobs import jobs

SPEC = JobSpec(name="test", run=Command(("true",)), resources=Resources(1.0, 512))


def people(store: Store, *names: str) -> list[Caller]:
    with store.write() as tx:
        project = identity.add_project(tx, "lab", "")
        found = []
        for name in names:
            user = identity.add_user(tx, name, home=project.id)
            role = Role.ADMIN if name == "admin" else Role.MEMBER
            identity.put_member(tx, project.id, user.id, role)
            found.append(Caller(user, TokenId("tok_test"), project, role))
    return found


def queued(store: Store, who: Caller) -> int:
    with store.read() as tx:
        return job_queues.queued_count(tx, who.project_id, who.user.id)


def submit(store: Store, who: Caller, count: int, max_queued: int) -> None:
    with store.write() as tx:
        submit_jobs(tx, who, [Submission(SPEC)] * count, max_queued=max_queued)


@pytest.mark.parametrize("limit", [5, 1005])
def test_nobody_has_more_in_the_queue_than_the_limit_also_where_nobody_counted_before(
    store: Store, limit: int
) -> None:
    """Counting begins only once so many jobs were ever submitted that the limit may be near."""
    ana, bob = people(store, "ana", "bob")
    with pytest.raises(QuotaExhausted, match=f"0 of your jobs are queued and at most {limit}"):
        submit(store, ana, limit + 1, limit)
    submit(store, ana, 2, limit)
    submit(store, ana, limit - 3, limit)
    with pytest.raises(QuotaExhausted, match=f"{limit - 1} of your jobs are queued and at most {limit}"):
        submit(store, ana, 2, limit)
    submit(store, ana, 1, limit)
    with pytest.raises(QuotaExhausted, match="wait until some have run"):
        submit(store, ana, 1, limit)
    assert queued(store, ana) == limit
    submit(store, bob, limit, limit)
    assert queued(store, bob) == limit, "somebody else's queue is another"
    with store.write() as tx:
        tx.execute(
            update(jobs).where(jobs.c.user_id == ana.user.id).values(state="finished", ended_at=tx.now)
        )
    submit(store, ana, 1, limit)
    assert queued(store, ana) == 1


def test_a_budget_and_a_quota_that_are_set_after_the_first_job_hold_for_the_second(store: Store) -> None:
    admin, ana = people(store, "admin", "ana")
    with store.write() as tx:
        submit_job(tx, ana, SPEC)
        set_quota(tx, admin, "ana", Quota(jobs=1))
        with pytest.raises(QuotaExhausted, match="you have 1 of 1 jobs"):
            submit_job(tx, ana, SPEC)
        submit_job(tx, admin, SPEC)
        set_quota(tx, admin, "ana", Quota())
        submit_job(tx, ana, SPEC)
        set_budget(tx, admin, Budget(0))
        with pytest.raises(QuotaExhausted):
            submit_job(tx, ana, SPEC)
        set_budget(tx, admin, None)
        submit_job(tx, ana, SPEC)
    assert queued(store, ana) == 3


def test_a_grant_holds_from_the_next_job_on_even_in_the_same_transaction(store: Store) -> None:
    admin, ana, bob = people(store, "admin", "ana", "bob")
    secret = replace(SPEC, output_set="Secret")
    with store.write() as tx:
        submit_job(tx, ana, secret)
        put_grant(tx, admin, Scope.FILE_SET, "Secret*", "user:bob", read=True, write=True)
        with pytest.raises(Denied):
            submit_job(tx, ana, secret)
        submit_job(tx, bob, secret)
        submit_job(tx, admin, secret)
        submit_job(tx, ana, SPEC)
    with store.write() as tx, pytest.raises(Denied):
        submit_job(tx, ana, secret)


def test_a_first_job_opens_the_queue_and_the_next_one_keeps_its_settings(store: Store) -> None:
    (ana,) = people(store, "ana")
    with store.write() as tx:
        submit_job(tx, ana, SPEC)
        job_queues.set_queue(tx, ana.project_id, ana.user.id, max_active=3, paused=True)
        submit_job(tx, ana, SPEC)
        assert job_queues.get_queue(tx, ana.project_id, ana.user.id) == (3, True)
    with store.read() as tx:
        (line,) = job_queues.states(tx, ana.project_id, 8)
        assert (line.queued, line.paused) == (2, True)

"""A job is named by its id, or by the end of it where no other job of the project has that end."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.errors import Conflict, NotFound
from easel.flow.jobs.control import kill_job, reorder, rerun_job
from easel.flow.jobs.submit import submit_job
from easel.ids import TokenId, id_end
from easel.records.identity import Caller
from easel.records.job import Job, JobState
from easel.store import identity, jobs
from easel.store.engine import Store
from easel.store.schema.jobs import jobs as table

SPEC = JobSpec(name="test", run=Command(("true",)), resources=Resources(1.0, 512))


def member(store: Store, project: str) -> Caller:
    with store.write() as tx:
        made = identity.add_project(tx, project, "")
        user = identity.add_user(tx, f"{project}-ana", home=made.id, platform_admin=False)
        identity.put_member(tx, made.id, user.id, Role.ADMIN)
    return Caller(user, TokenId("tok_test"), made, Role.ADMIN)


def submitted(store: Store, who: Caller, count: int) -> list[Job]:
    with store.write() as tx:
        return [submit_job(tx, who, SPEC) for _ in range(count)]


def test_the_end_of_an_id_names_the_job_for_whatever_is_done_to_it(store: Store) -> None:
    ana = member(store, "lab")
    one, two, three = submitted(store, ana, 3)
    with store.write() as tx:
        assert jobs.find(tx, ana.project_id, one.id[-6:]).id == one.id
        assert jobs.find(tx, ana.project_id, "…" + one.id[-6:].upper()).id == one.id
        assert reorder(tx, ana, "lab-ana", [three.id[-8:]])[0] == three.id
        assert kill_job(tx, ana, two.id[-6:]).state is JobState.KILLED
        assert rerun_job(tx, ana, two.id[-6:]).parent_id == two.id


def test_an_end_that_several_jobs_have_is_refused_with_their_ids(store: Store) -> None:
    ana = member(store, "lab")
    one, two = submitted(store, ana, 2)
    with store.write() as tx:
        twin = f"{two.id[:10]}{'0' * 14}{one.id[-6:]}"
        tx.execute(update(table).where(table.c.id == two.id).values(id=twin))
        with pytest.raises(Conflict, match="write more of it"):
            jobs.find(tx, ana.project_id, one.id[-6:])
        assert jobs.find(tx, ana.project_id, one.id[-12:]).id == one.id


def test_no_end_reaches_into_another_project(store: Store) -> None:
    ana, bob = member(store, "lab"), member(store, "other")
    (one,) = submitted(store, ana, 1)
    with store.read() as tx, pytest.raises(NotFound):
        jobs.find(tx, bob.project_id, one.id[-6:])


@pytest.mark.parametrize("text", ["", "abc", "%%%%", "____", "job_01m7", "a" * 26, "ab cd"])
def test_what_is_no_end_of_an_id_is_not_looked_for(text: str) -> None:
    assert id_end(text) is None

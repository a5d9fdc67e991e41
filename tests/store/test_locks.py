"""Transactions that want the same rows wait for each other in one order: nobody is told that the database is away."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from easel.declare.job import Command, JobSpec
from easel.declare.roles import Role
from easel.flow.jobs.submit import submit_job
from easel.ids import JobId, TokenId
from easel.records.identity import Caller
from easel.store import devices, identity, jobs
from easel.store.engine import Store
from easel.store.schema.identity import projects

PATIENCE_S = 30


@pytest.fixture
def ids(store: Store) -> list[JobId]:
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.ADMIN)
        ana = Caller(user, TokenId("tok"), project, Role.ADMIN)
        return [submit_job(tx, ana, JobSpec(f"j{number}", Command(("true",)))).id for number in range(30)]


def test_one_who_tells_first_and_one_who_locks_first_do_not_wait_for_each_other(
    store: Store, ids: list[JobId]
) -> None:
    """As the ledger, which warns and then stops jobs, beside the controller, which reads reports and then tells."""
    both_have_begun = threading.Barrier(2, timeout=0.5 if store.is_sqlite else PATIENCE_S)

    def meet() -> None:
        try:
            both_have_begun.wait()
        except threading.BrokenBarrierError:  # SQLite has one writer: the other begins when this one is done
            assert store.is_sqlite

    def tell_first() -> None:
        with store.write() as tx:
            tx.emit("test.told", "x")
            meet()
            jobs.rows(tx, ids)

    def lock_first() -> None:
        with store.write() as tx:
            jobs.rows(tx, ids)
            meet()
            tx.emit("test.told", "y")

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(tell_first), threads.submit(lock_first)]:
            done.result(PATIENCE_S)


def test_many_who_lock_the_same_jobs_from_different_ends_all_come_through(
    store: Store, ids: list[JobId]
) -> None:
    def change(number: int) -> None:
        some = ids[number % 7 :] + ids[: number % 7]
        with store.write() as tx:
            if number % 2:
                rows = jobs.rows(tx, some[::-1])
                jobs.change(tx, [(row, {"progress": 0.5}) for row in rows.values()])
            else:
                devices.note_jobs(tx, {f"{job}.0": f"device {number}" for job in some})

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(change, number) for number in range(40)]:
            done.result(PATIENCE_S)


def test_an_error_of_the_database_does_not_repeat_the_values_that_were_sent(store: Store) -> None:
    with store.write() as tx, pytest.raises(IntegrityError) as caught, tx.nested():
        tx.execute(insert(projects).values(id="a secret value"))
    assert "a secret value" not in str(caught.value)

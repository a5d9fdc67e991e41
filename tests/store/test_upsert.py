"""Many values travel to PostgreSQL in one parameter and arrive as they were, or fill a statement that is built once."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Column, Select, insert, select

from easel.store.engine import Store
from easel.store.schema.jobs import job_metrics, job_queues, jobs
from easel.store.upsert import in_slots, slot_values, slots_for, unnested
from easel.testing.postgres import Postgres


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("column", "values"),
    [
        (job_metrics.c.value, [0.1, 5e-324, -1.7976931348623157e308, None, 3.0]),
        (job_metrics.c.value, [math.inf, -math.inf, 1.0]),
        (job_metrics.c.step, [0, -(2**63), 2**63 - 1, None]),
        (job_metrics.c.name, ['say "it"', "a\\b\n", "ü 🙂", "", None, "null", "\\u0000"]),
        (job_metrics.c.at, [datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), None]),
        (jobs.c.kill_requested, [True, False]),
        (jobs.c.spec, [{"a": [1, None, "x"]}]),
    ],
    ids=lambda each: each.name if isinstance(each, Column) else "",
)
def test_values_arrive_as_they_were(
    postgres_server: Postgres, column: Column[Any], values: list[Any]
) -> None:
    store = Store(postgres_server.url())
    with store.read() as tx:
        assert list(tx.execute(select(unnested(column, values))).scalars()) == values
    store.close()


def test_few_different_statements_are_built_and_none_for_twice_as_many_as_are_asked_for() -> None:
    places = {count: slots_for(range(count)) for count in range(1, 1001)}
    assert all(count <= slots < 2 * count for count, slots in places.items())
    assert sorted(set(places.values())) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def test_places_that_are_left_over_look_for_the_last_value_again() -> None:
    assert slot_values("id", ["a"], 1) == {"id_0": "a"}
    assert slot_values("id", ["a", "b", "c"], 4) == {"id_0": "a", "id_1": "b", "id_2": "c", "id_3": "c"}


def of_users(slots: int) -> Select[*tuple[Any, ...]]:
    query = select(job_queues.c.user_id, job_queues.c.served).order_by(job_queues.c.served)
    return query.where(in_slots(job_queues.c.user_id, "user", slots))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1000])
def test_a_statement_that_was_built_once_finds_each_value_once(store: Store, count: int) -> None:
    names = [f"usr_{k:04d}" for k in range(count)]
    there = {"project_id": "prj_lab", "paused": False}
    with store.write() as tx:
        rows = [{**there, "user_id": name, "served": k} for k, name in enumerate([*names, "usr_other"])]
        tx.execute(insert(job_queues), rows)
        slots = slots_for(names)
        found = tx.execute(of_users(slots), slot_values("user", names, slots)).all()
        assert [tuple(row) for row in found] == [(name, k) for k, name in enumerate(names)]
        strange = ["usr_none"] * count
        assert tx.execute(of_users(slots), slot_values("user", strange, slots)).all() == []

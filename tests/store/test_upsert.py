"""Many values of a column travel to PostgreSQL in one parameter and arrive as they were."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Column, select

from easel.store.engine import Store
from easel.store.schema.jobs import job_metrics, jobs
from easel.store.upsert import unnested
from easel.testing.postgres import Postgres

pytestmark = pytest.mark.postgres


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

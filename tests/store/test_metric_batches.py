"""Batches that PostgreSQL keeps with one statement leave what points logged one after the other leave."""

from __future__ import annotations

import math
import random

import pytest
from sqlalchemy import select

from easel.store import job_series
from easel.store.engine import Store, Tx
from easel.store.metric_batches import Logged, LoggedRun, add_batch, as_row
from easel.store.schema import jobs as schema

pytestmark = pytest.mark.postgres
AT_ONCE, ONE_BY_ONE = LoggedRun("job_1", 1, "prj_1", 1), LoggedRun("job_2", 1, "prj_1", 2)


def kept(tx: Tx, run: LoggedRun) -> list[list[tuple[object, ...]]]:
    found = []
    for table in (schema.job_metrics, schema.job_metric_repeats, schema.job_series):
        ignored = ("job_id", "artifact_id", "open", "closed", "closed_to")
        columns = [column for column in table.c if column.name not in ignored]
        rows = tx.execute(select(*columns).where(table.c.job_id == run.job_id))
        found.append(sorted((tuple(row) for row in rows), key=repr))
    return found


def some_points(rng: random.Random) -> list[Logged]:
    """Names with quotes and brackets, steps that come late or again, values that are no numbers."""
    names = ["loss", 'ü "{}", \\ null', "null"]
    values = [0.5, -3.0, 1e-300, math.nan, math.inf, -math.inf]
    return [
        Logged(rng.choice(names), rng.randrange(-300, 900), rng.choice(values), 1000 * rng.randrange(9))
        for _ in range(rng.randrange(1, 900))
    ]


@pytest.mark.parametrize("seed", range(3))
def test_one_statement_keeps_what_single_points_do(postgres_store: Store, seed: int) -> None:
    rng = random.Random(seed)
    with postgres_store.write() as tx:
        for _ in range(4):
            points = some_points(rng)
            add_batch(tx, AT_ONCE, points)
            job_series.add_further(tx, [as_row(ONE_BY_ONE, point) for point in points])
        assert kept(tx, AT_ONCE) == kept(tx, ONE_BY_ONE)
        for name in {point.name for point in points}:
            at_once, one_by_one = (
                job_series.outline(tx, job_series.Series(run.job_id, 1, name), read_whole=0)
                for run in (AT_ONCE, ONE_BY_ONE)
            )
            assert at_once[0] == one_by_one[0]


def test_a_batch_sent_again_changes_nothing(postgres_store: Store) -> None:
    points = some_points(random.Random(7))
    with postgres_store.write() as tx:
        add_batch(tx, AT_ONCE, points)
        before = kept(tx, AT_ONCE)
        add_batch(tx, AT_ONCE, points)
        assert kept(tx, AT_ONCE) == before

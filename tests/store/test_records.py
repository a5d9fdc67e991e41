"""Records that are made of whole rows name the columns of their tables, in their order."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from sqlalchemy import Table

from easel.store.offered import KnownWorker, OfferedWork, WorkReport
from easel.store.profiles import PromiseToCompare
from easel.store.promises import KeptPromise
from easel.store.schema import jobs, price, workers
from easel.store.stored_job import StoredJob


@pytest.mark.parametrize(
    ("record", "table", "more"),
    [
        (StoredJob, jobs.jobs, ()),
        (OfferedWork, workers.work, ()),
        (WorkReport, workers.work_reports, ()),
        (KnownWorker, workers.workers, ()),
        (KeptPromise, price.promises, ("held_at", "ended_at")),
        (PromiseToCompare, price.provisions, ("state", "usage", "came_to")),
    ],
)
def test_a_record_has_its_tables_columns(
    record: type[NamedTuple], table: Table, more: tuple[str, ...]
) -> None:
    assert record._fields == (*table.c.keys(), *more)


@pytest.mark.parametrize(
    ("record", "table"),
    [(StoredJob, jobs.jobs), (OfferedWork, workers.work), (WorkReport, workers.work_reports)],
)
def test_what_the_database_may_leave_empty_may_be_none(record: type[NamedTuple], table: Table) -> None:
    said = {name for name, kind in record.__annotations__.items() if "None" in str(kind)}
    always = {
        "artifact_id"
    }  # older databases may have it empty in theory; each job has had one since it was submitted
    assert said == {column.name for column in table.c if column.nullable} - always

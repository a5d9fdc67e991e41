"""All rows of one project: to hand them out, and to remove them.

A table belongs to projects if it has a `project_id`, or a column that names something which has: a job, an app.
Tables that other modules add are found by the same rule.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, or_, select

from easel.ids import ProjectId
from easel.store import schema
from easel.store.engine import Tx
from easel.store.schema.apps import apps
from easel.store.schema.identity import idempotency, projects
from easel.store.schema.jobs import jobs
from easel.store.schema.lake import artifacts, job_reads, uploads
from easel.store.schema.price import profiles
from easel.store.schema.studies import studies
from easel.store.schema.tenants import trial_history
from easel.store.schema.tracking import run_models

_PARENTS: dict[str, ColumnElement[Any]] = {
    "app_id": apps.c.id,
    "job_id": jobs.c.id,
    "study_id": studies.c.id,
    "profile_id": profiles.c.id,
    "upload_id": uploads.c.id,
    "artifact_id": artifacts.c.id,
}
_KEPT: tuple[Table, ...] = (idempotency, trial_history)
"""Rows that outlive a project: answers by user, and scores that tell of nobody's data."""
_PRIVATE = {"secret_hash"}


def tables() -> list[Table]:
    """Returns the tables that hold rows of projects, what names others first, the project itself last."""
    found = [
        table
        for table in schema.metadata.sorted_tables
        if table is not projects
        and not table.name.startswith("audit")
        and _condition(table, ProjectId("")) is not None
    ]
    first = [table for table in found if "project_id" not in table.c]
    held = [table for table in found if "project_id" in table.c]
    owners = {apps, jobs, studies, profiles, uploads, artifacts}
    rest = [table for table in held if table not in owners]
    return [*first, *rest, *(table for table in held if table in owners), projects]


def _condition(table: Table, project_id: ProjectId) -> ColumnElement[bool] | None:
    if table in _KEPT:
        return None
    if table is projects:
        return projects.c.id == project_id
    if "project_id" in table.c:
        found: ColumnElement[bool] = table.c.project_id == project_id
        return found
    if table is job_reads:
        return job_reads.c.job.in_(select(artifacts.c.id).where(artifacts.c.project_id == project_id))
    if table is run_models:
        return run_models.c.job_id.in_(select(jobs.c.id).where(jobs.c.project_id == project_id))
    conditions = [
        table.c[name].in_(select(parent).where(parent.table.c.project_id == project_id))
        for name, parent in _PARENTS.items()
        if name in table.c
    ]
    return or_(*conditions) if conditions else None


def rows(tx: Tx, project_id: ProjectId) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row of a project with the name of its table; secrets are left out."""
    for table in reversed(tables()):
        condition = _condition(table, project_id)
        assert condition is not None
        columns = [column for column in table.c if column.name not in _PRIVATE]
        found = tx.conn.execution_options(yield_per=500).execute(select(*columns).where(condition))
        for row in found:
            yield table.name, {name: _plain(value) for name, value in row._mapping.items()}


def remove(tx: Tx, project_id: ProjectId) -> int:
    """Remove every row of a project; returns how many."""
    total = 0
    for table in tables():
        condition = _condition(table, project_id)
        assert condition is not None
        total += tx.execute(delete(table).where(condition)).rowcount
    return total


def app_names(tx: Tx, project_id: ProjectId) -> list[str]:
    return [row.name for row in tx.execute(select(apps.c.name).where(apps.c.project_id == project_id))]


def study_names(tx: Tx, project_id: ProjectId) -> list[str]:
    return [row.name for row in tx.execute(select(studies.c.name).where(studies.c.project_id == project_id))]


def file_digests(tx: Tx, project_id: ProjectId) -> list[bytes]:
    """The bytes that files of a project have or had, each once."""
    query = select(artifacts.c.digest).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == "file", artifacts.c.digest.is_not(None)
    )
    return sorted({bytes(row.digest) for row in tx.execute(query.where(artifacts.c.dropped_at.is_(None)))})


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    return value.isoformat() if isinstance(value, datetime) else value

"""Queries on the jobs that look into an app."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, insert, select

from easel.ids import AppId, JobId
from easel.store.engine import Tx
from easel.store.schema.apps import app_reports


def note(tx: Tx, app_id: AppId, kind: str, subject: str, job_id: JobId) -> None:
    """The job whose result counts from now on; one for each kind and subject."""
    here = _place(app_id, kind, subject)
    tx.execute(delete(app_reports).where(*here))
    values = {"app_id": app_id, "kind": kind, "subject": subject, "job_id": job_id, "at": tx.now}
    tx.execute(insert(app_reports).values(**values))


def job_of(tx: Tx, app_id: AppId, kind: str, subject: str) -> JobId | None:
    """Returns the newest job that looked into it."""
    found = tx.execute(select(app_reports.c.job_id).where(*_place(app_id, kind, subject))).scalar()
    return None if found is None else JobId(found)


def _place(app_id: AppId, kind: str, subject: str) -> tuple[ColumnElement[bool], ...]:
    table = app_reports.c
    return table.app_id == app_id, table.kind == kind, table.subject == subject

"""What jobs of all projects asked for, when they came and how long they held devices: for those who plan a pool."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_trials, apps
from easel.store.schema.jobs import job_needs, jobs


def held_since(tx: Tx, since: datetime, most: int) -> list[AnyRow]:
    """Returns the newest `most` jobs that came after a moment and have ended on a device, oldest first.

    Rows `id`, `kind`, `project_id`, `user_id`, `spec`, `submitted_at`, `held_at`, `ended_at`.
    """
    columns = [jobs.c.id, jobs.c.kind, jobs.c.project_id, jobs.c.user_id, jobs.c.spec]
    columns += [jobs.c.submitted_at, jobs.c.held_at, jobs.c.ended_at]
    query = (
        select(*columns)
        .where(jobs.c.submitted_at > since, jobs.c.held_at.is_not(None), jobs.c.ended_at.is_not(None))
        .order_by(jobs.c.seq.desc())
        .limit(most)
    )
    return list(tx.execute(query))[::-1]


def with_needs(tx: Tx) -> set[str]:
    """Returns the jobs that waited for others to end."""
    return {row.job_id for row in tx.execute(select(job_needs.c.job_id).distinct())}


def trials_since(tx: Tx, since: datetime, most: int) -> list[AnyRow]:
    """Returns the newest `most` ended trials of every app: `app_id`, `candidate`, `quality`, `seconds`."""
    query = (
        select(apps.c.id.label("app_id"), app_trials.c.candidate, app_trials.c.quality, app_trials.c.seconds)
        .join(apps, apps.c.id == app_trials.c.app_id)
        .where(app_trials.c.ended.is_(True), app_trials.c.started_at > since)
        .order_by(app_trials.c.seq.desc())
        .limit(most)
    )
    return list(tx.execute(query))[::-1]

"""What jobs of all projects asked for, when they came and how long they held devices: for those who plan a pool."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select

from easel.store.engine import Tx
from easel.store.schema.apps import app_trials, apps
from easel.store.schema.jobs import job_needs, jobs


class JobThatHeld(NamedTuple):
    """What a job that has ended on a device asked for, and when it came, held the device and ended."""

    id: str
    kind: str
    project_id: str
    user_id: str
    spec: Mapping[str, Any]
    submitted_at: datetime
    held_at: datetime
    ended_at: datetime


class ScoredCandidate(NamedTuple):
    """How good a candidate was in a trial of an app, and for how long it trained."""

    app_id: str
    candidate: Mapping[str, Any]
    quality: float | None
    seconds: float | None


def held_since(tx: Tx, since: datetime, most: int) -> list[JobThatHeld]:
    """Returns the newest `most` jobs that came after a moment and have ended on a device, oldest first."""
    query = (
        select(*(jobs.c[name] for name in JobThatHeld._fields))
        .where(jobs.c.submitted_at > since, jobs.c.held_at.is_not(None), jobs.c.ended_at.is_not(None))
        .order_by(jobs.c.seq.desc())
        .limit(most)
    )
    return [JobThatHeld._make(row) for row in tx.execute(query)][::-1]


def with_needs(tx: Tx) -> set[str]:
    """Returns the jobs that waited for others to end."""
    return {row.job_id for row in tx.execute(select(job_needs.c.job_id).distinct())}


def trials_since(tx: Tx, since: datetime, most: int) -> list[ScoredCandidate]:
    """Returns the newest `most` ended trials of every app, oldest first."""
    query = (
        select(apps.c.id.label("app_id"), app_trials.c.candidate, app_trials.c.quality, app_trials.c.seconds)
        .join(apps, apps.c.id == app_trials.c.app_id)
        .where(app_trials.c.ended.is_(True), app_trials.c.started_at > since)
        .order_by(app_trials.c.seq.desc())
        .limit(most)
    )
    return [ScoredCandidate._make(row) for row in tx.execute(query)][::-1]

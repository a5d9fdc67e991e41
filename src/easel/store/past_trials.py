"""What the trials of a project's apps came to, all in one query: for those who learn from history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select

from easel.ids import ProjectId
from easel.store.engine import Tx
from easel.store.schema.apps import app_trials, apps


class TrialOfApp(NamedTuple):
    """What a trial came to; `name` is that of its app."""

    name: str
    candidate: Mapping[str, Any]
    quality: float | None
    seconds: float | None
    started_at: datetime


def ended(tx: Tx, project_id: ProjectId) -> list[TrialOfApp]:
    """Returns the trials of a project's apps that have ended, in the order of the decisions."""
    query = (
        select(
            apps.c.name,
            app_trials.c.candidate,
            app_trials.c.quality,
            app_trials.c.seconds,
            app_trials.c.started_at,
        )
        .join(apps, apps.c.id == app_trials.c.app_id)
        .where(apps.c.project_id == project_id, app_trials.c.ended.is_(True))
        .order_by(app_trials.c.seq)
    )
    return [TrialOfApp._make(row) for row in tx.execute(query)]

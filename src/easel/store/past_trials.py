"""What the trials of a project's apps came to, all in one query: for those who learn from history."""

from __future__ import annotations

from sqlalchemy import select

from easel.ids import ProjectId
from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_trials, apps


def ended(tx: Tx, project_id: ProjectId) -> list[AnyRow]:
    """Rows `name` (of the app), `candidate`, `quality`, `seconds`, `started_at`, in the order of the decisions."""
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
    return list(tx.execute(query))

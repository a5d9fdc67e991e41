"""Tells once that an app is done: nothing more of it starts until its people change something."""

from __future__ import annotations

from collections.abc import Collection

from easel.flow.prices import book_now
from easel.flow.words import standing as words
from easel.ids import AppId
from easel.records.standing import Obstacle, Standing
from easel.store import apps, events
from easel.store.engine import Tx

DONE = "app.done"
_TRIED = "app.trial_ended"


def tell_done(tx: Tx, members: Collection[str], obstacle: Obstacle) -> None:
    """Emits `app.done` for those of `members` that are apps and have tried something since it was last told."""
    newest = events.newest_of_kinds(tx, members, (_TRIED, DONE))
    for name in members:
        app = apps.maybe(tx, AppId(name)) if newest.get(name) == _TRIED else None
        if app is None:
            continue
        currency = book_now(tx).currency if obstacle.kind is Standing.OWN_BUDGET_SPENT else ""
        why = words.sentence("app", app.name, obstacle, None, tx.now, currency)
        body = {"standing": obstacle.kind.value, "reason": why}
        tx.emit(DONE, app.id, project_id=app.project_id, actor=app.user_id, body=body)

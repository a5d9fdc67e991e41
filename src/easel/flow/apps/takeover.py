"""Which models answered for an app one after the other, and going back to the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from easel.errors import Conflict
from easel.flow.apps.best import best_among, serving
from easel.records.app import App, AppTrial
from easel.records.identity import Caller
from easel.store import app_trials, apps
from easel.store.engine import Tx


def takeovers(trials: Iterable[AppTrial]) -> list[AppTrial]:
    """The trials whose models were the best when they ended, in that order, each once in a row."""
    ended = [each for each in trials if each.ended_at is not None and each.model_set is not None]
    ended.sort(key=lambda each: each.ended_at or each.started_at)
    found: list[AppTrial] = []
    for number, each in enumerate(ended, start=1):
        best = best_among(ended[:number], each.examples)
        if best is not None and (not found or found[-1].model_set != best.model_set):
            found.append(best)
    return found


def place_of(now: AppTrial, found: Sequence[AppTrial]) -> int:
    """Where the model that answers stands among them; the last time it took over counts."""
    places = [k for k, each in enumerate(found) if each.model_set == now.model_set]
    if places:
        return places[-1]
    since = now.ended_at or now.started_at
    return sum((each.ended_at or each.started_at) < since for each in found)


def roll_back(tx: Tx, caller: Caller, name: str) -> App:
    """Let the model answer that answered before the present one. It stays until somebody rolls forward or unpins."""
    app, now, found = _standing(tx, caller, name)
    here = place_of(now, found)
    if here == 0:
        raise Conflict(f"{now.model_set} was the first model of {name}: there is none before it")
    return _move(tx, caller, app, now, found[here - 1].model_set, "app.rolled_back")


def roll_forward(tx: Tx, caller: Caller, name: str) -> App:
    """Let the model answer that came after the present one; after the newest, the best answers by itself again."""
    app, now, found = _standing(tx, caller, name)
    if app.pinned is None:
        raise Conflict(f"{name} is not rolled back: the best model so far answers")
    after = place_of(now, found) + 1
    target = found[after].model_set if after < len(found) - 1 else None
    return _move(tx, caller, app, now, target, "app.rolled_forward")


def _standing(tx: Tx, caller: Caller, name: str) -> tuple[App, AppTrial, list[AppTrial]]:
    app = apps.find(tx, caller.project_id, name)
    now = serving(tx, app)
    if now is None:
        raise Conflict(f"{name} has no model yet: there is nothing to roll back")
    return app, now, takeovers(app_trials.trials(tx, app.id))


def _move(tx: Tx, caller: Caller, app: App, now: AppTrial, target: str | None, kind: str) -> App:
    apps.pin(tx, app.id, target)
    changed = apps.find(tx, caller.project_id, app.id)
    answers = serving(tx, changed)
    body = {"from": now.model_set, "to": None if answers is None else answers.model_set, "name": app.name}
    tx.emit(kind, app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return changed

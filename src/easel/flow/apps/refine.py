"""refine: examples are looked at, switched off and on singly, by query or by suspicion, with undo."""

from __future__ import annotations

from collections.abc import Sequence

from easel.declare.page import Filter, PageRequest
from easel.errors import NotFound
from easel.flow.apps.readable import need_examples
from easel.records.app import App, FedExample
from easel.records.identity import Caller
from easel.store import app_examples
from easel.store.engine import Tx
from easel.store.paging import Page


def browse(tx: Tx, caller: Caller, name: str, page: PageRequest) -> Page[FedExample]:
    """All examples ever fed, oldest first unless asked otherwise."""
    return app_examples.page(tx, need_examples(tx, caller, name).id, page)


def find_example(tx: Tx, caller: Caller, name: str, digest: str) -> tuple[App, FedExample]:
    """Returns an app with one of its examples; NotFound where either is not there."""
    app = need_examples(tx, caller, name)
    return app, app_examples.find(tx, app.id, digest)


def matching(tx: Tx, caller: Caller, name: str, filters: Sequence[Filter]) -> list[str]:
    """The digests of the examples that pass all filters."""
    return app_examples.matching(tx, need_examples(tx, caller, name).id, filters)


def refine(tx: Tx, caller: Caller, name: str, digests: Sequence[str], *, on: bool) -> list[str]:
    """Switch examples; those that changed. The next trials use the refined set."""
    app = need_examples(tx, caller, name)
    strange = set(digests) - app_examples.known(tx, app.id, list(digests))
    if strange:
        raise NotFound(f"the app has no example {min(strange)[:40]!r}")
    changed = app_examples.switch(tx, app.id, list(digests), on)
    if changed:
        app_examples.note_refinement(tx, app.id, caller.user.id, changed, on)
        body = {"on": on, "examples": len(changed)}
        tx.emit("app.refined", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return changed


def undo_refine(tx: Tx, caller: Caller, name: str) -> list[str]:
    """Take back the newest switch that stands; those that changed."""
    app = need_examples(tx, caller, name)
    last = app_examples.take_last_refinement(tx, app.id)
    if last is None:
        raise NotFound(f"{name} has nothing to undo")
    digests, on = last
    changed = app_examples.switch(tx, app.id, digests, not on)
    body = {"on": not on, "examples": len(changed), "undo": True}
    tx.emit("app.refined", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return changed

"""Which apps' examples a caller may look at: what a grant hides in the lake is hidden on the app's pages too."""

from __future__ import annotations

from easel.errors import NotFound
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import apps
from easel.store.engine import Tx
from easel.store.lake.grants import rights_of


def need_examples(tx: Tx, caller: Caller, name: str) -> App:
    """Returns the app, if the caller may read the folder and the file set that hold its examples.

    Its owner always may, having fed it. To others without a grant the examples do not exist: neither their previews,
    counts by class and suspicions nor what checks and reports quote of them.
    """
    app = apps.find(tx, caller.project_id, name)
    if app.user_id == caller.user.id:
        return app
    rights = rights_of(tx, caller)
    set_name = (app.examples_set or "").partition(":")[0]
    if rights.reads_path(app.folder) and (not set_name or rights.reads_set(set_name)):
        return app
    raise NotFound(
        f"the examples of {name} are in files that you may not read: ask an admin of this project for a grant"
    )

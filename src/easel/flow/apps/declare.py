"""An app is declared, listed, deleted."""

from __future__ import annotations

from easel.declare.friendly import read_program
from easel.declare.names import slug
from easel.match.metrics import metric_for
from easel.match.templates import match_program
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import apps
from easel.store.engine import Tx


def declare_app(tx: Tx, caller: Caller, name: str, program: str, metric: str | None = None) -> App:
    """Check the program and the metric, then remember them; the program is kept in the paper's notation."""
    declared = read_program(program)
    if metric is not None:
        metric_for(match_program(declared).task, metric)
    app = apps.add(tx, caller.project_id, caller.user.id, slug(name, "app"), str(declared), metric)
    body = {"name": app.name, "program": app.program}
    tx.emit("app.declared", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return app


def delete_app(tx: Tx, caller: Caller, name: str) -> None:
    """Its trials that still run end by themselves and are ignored: nobody asks for them any more."""
    app = apps.find(tx, caller.project_id, name)
    apps.remove(tx, app.id)
    body = {"name": app.name}
    tx.emit("app.deleted", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)

"""An app is declared, changed, pinned to a model, deleted."""

from __future__ import annotations

from easel.declare.friendly import read_program
from easel.declare.names import slug
from easel.declare.parse import parse_program
from easel.declare.program import Category
from easel.errors import InvalidInput, NotFound
from easel.flow.apps.gather import owner_of
from easel.flow.jobs.control import kill_job
from easel.match.metrics import metric_for
from easel.match.templates import match_program
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import app_trials, apps, jobs
from easel.store.engine import Tx


def declare_app(
    tx: Tx,
    caller: Caller,
    name: str,
    program: str,
    metric: str | None = None,
    *,
    rates_inside: bool = False,
) -> App:
    """Check the program and the metric, then remember them; the program is kept in the paper's notation."""
    declared = read_program(program)
    goal = declared.output.fields[0]
    if isinstance(goal, Category) and len(goal.values) == 1 and len(declared.output.fields) == 1:
        raise InvalidInput(
            f"with {goal.values[0]} as the only class there is nothing to tell apart: name another one"
        )
    if metric is not None:
        metric_for(match_program(declared).task, metric)
    app = apps.add(
        tx,
        caller.project_id,
        caller.user.id,
        slug(name, "app"),
        str(declared),
        metric,
        rates_inside=rates_inside,
    )
    body = {"name": app.name, "program": app.program}
    tx.emit("app.declared", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return app


def change_app(tx: Tx, caller: Caller, name: str, metric: str) -> App:
    """Another metric. Earlier scores are in another unit: what was tried is tried again under the new one."""
    app = apps.find(tx, caller.project_id, name)
    chosen, _ = metric_for(match_program(parse_program(app.program)).task, metric)
    if chosen != app.metric:
        apps.set_metric(tx, app.id, chosen)
        app_trials.forget(tx, app.id)
        body = {"name": app.name, "metric": chosen}
        tx.emit("app.changed", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return apps.find(tx, caller.project_id, name)


def pin(tx: Tx, caller: Caller, name: str, model_set: str) -> App:
    """From now on this model answers, whatever is found."""
    app = apps.find(tx, caller.project_id, name)
    if app_trials.of_model(tx, app.id, model_set) is None:
        raise NotFound(f"{name} has no model {model_set[:80]!r}: `easel apps trials {name}` lists them")
    apps.pin(tx, app.id, model_set)
    body = {"model": model_set}
    tx.emit("app.pinned", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return apps.find(tx, caller.project_id, name)


def unpin(tx: Tx, caller: Caller, name: str) -> App:
    """From now on the best model so far answers again."""
    app = apps.find(tx, caller.project_id, name)
    if app.pinned is not None:
        apps.pin(tx, app.id, None)
        tx.emit("app.unpinned", app.id, project_id=caller.project_id, actor=caller.user.id, body={})
    return apps.find(tx, caller.project_id, name)


def delete_app(tx: Tx, caller: Caller, name: str) -> None:
    """Its trials that still run are ended; its examples and models stay in the lake's history."""
    app = apps.find(tx, caller.project_id, name)
    owner = owner_of(tx, app)
    for trial in app_trials.trials(tx, app.id, running=True):
        if owner is not None and trial.job_id in jobs.rows(tx, [trial.job_id]):
            kill_job(tx, owner, trial.job_id, f"the app {app.name} was deleted")
    apps.remove(tx, app.id)
    body = {"name": app.name}
    tx.emit("app.deleted", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)

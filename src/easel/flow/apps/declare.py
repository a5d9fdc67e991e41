"""An app is declared, changed, pinned to a model, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from easel.declare.friendly import read_program
from easel.declare.loosen import loosened
from easel.declare.names import slug
from easel.declare.parse import parse_program
from easel.declare.program import Category
from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput, NotFound
from easel.flow.apps.best import best_of
from easel.flow.apps.ensemble import combine_where_due
from easel.flow.apps.ready import owner_of
from easel.flow.jobs.control import kill_job
from easel.ids import JobId
from easel.match.costs import is_cost, largest_cost
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


@dataclass(frozen=True)
class KeptScore:
    """What a trial scores in another metric by the answers that it kept."""

    quality: float
    error: float | None = None
    baseline: float | None = None


def change_app(
    tx: Tx, caller: Caller, name: str, metric: str, kept: Mapping[JobId, KeptScore] | None = None
) -> App:
    """Another metric. Trials have their scores in every metric of the task, or in `kept`, so that the best of them goes
    on serving; what left neither, or is running now, is tried again. What was combined for another is combined anew.
    """
    app = apps.find(tx, caller.project_id, name)
    chosen, _ = metric_for(match_program(parse_program(app.program)).task, metric)
    if chosen != app.metric:
        _end_trials(tx, app, f"{app.name} is measured by {chosen} from now on")
        apps.set_metric(tx, app.id, chosen)
        _rescore(tx, app, chosen, kept or {})
        combine_where_due(tx, apps.find(tx, caller.project_id, name))
        body = {"name": app.name, "metric": chosen}
        tx.emit("app.changed", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return apps.find(tx, caller.project_id, name)


def change_program(tx: Tx, caller: Caller, name: str, program: str) -> App:
    """A wider program: values that may be missing from now on, classes more. What was fed and learned stays valid."""
    app = apps.find(tx, caller.project_id, name)
    wanted = str(loosened(parse_program(app.program), read_program(program)))
    if wanted != app.program:
        apps.set_program(tx, app.id, wanted)
        body = {"name": app.name, "program": wanted}
        tx.emit("app.changed", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return apps.find(tx, caller.project_id, name)


def _rescore(tx: Tx, app: App, metric: str, kept: Mapping[JobId, KeptScore]) -> None:
    trials = app_trials.trials(tx, app.id)
    told = {
        job_id: jobs.job_of(row).result or {}
        for job_id, row in jobs.rows(tx, [t.job_id for t in trials], lock=False).items()
    }
    unknown, scored = list[JobId](), 0
    for trial in trials:
        result = told.get(trial.job_id) or {}
        quality = (result.get("scores") or {}).get(metric)
        if quality is not None and result.get("metric") == metric:
            measured = (result.get(name) for name in ("error", "baseline", "luck"))
            app_trials.rescore(tx, app.id, trial.job_id, float(quality), *measured)
        elif trial.job_id in kept:
            one = kept[trial.job_id]
            app_trials.rescore(tx, app.id, trial.job_id, one.quality, one.error, one.baseline)
        elif quality is not None:
            app_trials.rescore(tx, app.id, trial.job_id, float(quality))
        else:
            unknown += [trial.job_id] if trial.quality is not None or not trial.ended else []
            continue
        scored += 1
    if is_cost(metric) and not scored:
        last = _kept_until_scored(tx, app, told, metric)
        unknown = [job_id for job_id in unknown if job_id != last]
    app_trials.forget(tx, app.id, unknown)


def _kept_until_scored(tx: Tx, app: App, told: Mapping[str, Mapping[str, Any]], metric: str) -> JobId | None:
    """The best trial serves until others have been scored by the costs; its score is what it costs at most."""
    best = best_of(tx, app)
    result = {} if best is None else told.get(best.job_id) or {}
    accuracy = (result.get("scores") or {}).get("accuracy")
    if best is None or accuracy is None:
        return None
    app_trials.rescore(tx, app.id, best.job_id, -(1.0 - float(accuracy)) * largest_cost(metric))
    return best.job_id


def pin(tx: Tx, caller: Caller, name: str, model_set: str) -> App:
    """Lets this model answer from now on, whatever is found."""
    app = apps.find(tx, caller.project_id, name)
    if app_trials.of_model(tx, app.id, model_set) is None:
        raise NotFound(f"{name} has no model {model_set[:80]!r}: `easel apps trials {name}` lists them")
    apps.pin(tx, app.id, model_set)
    body = {"model": model_set}
    tx.emit("app.pinned", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return apps.find(tx, caller.project_id, name)


def unpin(tx: Tx, caller: Caller, name: str) -> App:
    """Lets the best model so far answer again."""
    app = apps.find(tx, caller.project_id, name)
    if app.pinned is not None:
        apps.pin(tx, app.id, None)
        tx.emit("app.unpinned", app.id, project_id=caller.project_id, actor=caller.user.id, body={})
    return apps.find(tx, caller.project_id, name)


def delete_app(tx: Tx, caller: Caller, name: str) -> None:
    """Deletes an app and ends its running trials; its examples and models stay in the lake's history."""
    app = apps.find(tx, caller.project_id, name)
    if caller.role is not Role.ADMIN and app.user_id != caller.user.id:
        raise Denied("only its owner or an admin of the project may delete an app")
    _end_trials(tx, app, f"the app {app.name} was deleted")
    apps.remove(tx, app.id)
    body = {"name": app.name}
    tx.emit("app.deleted", app.id, project_id=caller.project_id, actor=caller.user.id, body=body)


def _end_trials(tx: Tx, app: App, why: str) -> None:
    """Ends the app's running trials that no other app shares."""
    owner = owner_of(tx, app)
    for trial in app_trials.trials(tx, app.id, running=True):
        alone = app_trials.sharers(tx, trial.job_id) == 1
        if alone and owner is not None and trial.job_id in jobs.rows(tx, [trial.job_id]):
            kill_job(tx, owner, trial.job_id, why)

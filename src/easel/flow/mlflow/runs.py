"""Runs: create, find, change, delete, restore, and everything that clients log to them."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from easel.declare.job import FreeRun, JobSpec
from easel.declare.roles import Role
from easel.errors import Denied
from easel.flow.lake.visible import hidden_jobs
from easel.flow.mlflow import experiments
from easel.flow.mlflow.checks import (
    KeyValue,
    MetricPoint,
    check_batch,
    check_metric,
    check_param,
    check_run_id,
    check_tag,
)
from easel.flow.mlflow.errors import absent, invalid
from easel.ids import JobId
from easel.records.identity import Caller
from easel.records.job import TERMINAL, JobState
from easel.records.lake import Kind
from easel.records.run import ModelUse, RunLog, RunRecord
from easel.store import job_catalogue, runs
from easel.store.engine import Tx
from easel.store.lake.tags import NewTag, put_all
from easel.store.metric_batches import Logged, LoggedRun, add_batch

RUN_NAME = "mlflow.runName"
USER = "mlflow.user"
MODEL_HISTORY = "mlflow.log-model.history"
ATTEMPT = 1
_STATES = {
    "RUNNING": JobState.RUNNING,
    "SCHEDULED": JobState.QUEUED,
    "FINISHED": JobState.FINISHED,
    "FAILED": JobState.FAILED,
    "KILLED": JobState.KILLED,
}
STATUSES = {
    JobState.QUEUED: "SCHEDULED",
    JobState.LAUNCHING: "SCHEDULED",
    JobState.DOWNLOADING: "SCHEDULED",
    JobState.RUNNING: "RUNNING",
    JobState.UPLOADING: "RUNNING",
    JobState.FINISHED: "FINISHED",
    JobState.FAILED: "FAILED",
    JobState.KILLED: "KILLED",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_000
_ADJECTIVES = (
    "amber",
    "bold",
    "calm",
    "deft",
    "eager",
    "fleet",
    "keen",
    "lively",
    "mellow",
    "quiet",
    "sunny",
    "wise",
)
_NOUNS = (
    "ash",
    "birch",
    "brook",
    "cedar",
    "crane",
    "fern",
    "finch",
    "heron",
    "larch",
    "maple",
    "otter",
    "wren",
)


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run with all that it logged. `user` is who its client said, or its owner's name."""

    record: RunRecord
    log: RunLog
    user: str
    location: str | None = None
    """Where its experiment keeps files, if not in Easel."""


def status_of(state: JobState) -> str:
    return STATUSES[state]


def states_of(status: str) -> list[str]:
    return [state.value for state, name in STATUSES.items() if name == status]


def moment(milliseconds: int) -> datetime:
    """Times that no calendar has become the last one that has a date."""
    return _EPOCH + timedelta(milliseconds=_dated(milliseconds))


def _dated(milliseconds: int) -> int:
    return max(0, min(milliseconds, _LAST_MS))


def milliseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def find(tx: Tx, caller: Caller, run_id: str) -> RunRecord:
    """A run; one whose files a grant hides from the caller does not exist for them."""
    found = runs.find(tx, caller.project_id, run_id)
    own = found is not None and found.user_id == caller.user.id
    if found is None or (not own and hidden_jobs(tx, caller, [found.id])):
        raise absent(f"Run with id={run_id[:80]} not found")
    return found


def get(tx: Tx, caller: Caller, run_id: str) -> WholeRun:
    return whole(tx, caller, [find(tx, caller, run_id)])[0]


def whole(tx: Tx, caller: Caller, records: Sequence[RunRecord]) -> list[WholeRun]:
    """Returns these runs with their logs."""
    logs = runs.logs_of(tx, records)
    names = runs.user_names(tx, {record.user_id for record in records})
    places = {
        number: experiments.find(tx, caller, str(number)).artifact_location
        for number in {record.experiment for record in records}
    }
    found = []
    for record in records:
        log = logs[record.id]
        user = record.said_user or log.tags.get(USER) or names.get(record.user_id, "unknown")
        if not record.free:
            made_up = {RUN_NAME: record.name, USER: user, "mlflow.source.type": "JOB"}
            log = RunLog(log.metrics, log.params, {**made_up, **log.tags}, log.datasets, log.models)
        found.append(WholeRun(record, log, user, places[record.experiment]))
    return found


def create(
    tx: Tx,
    caller: Caller,
    *,
    experiment_id: str,
    user: str,
    start_time: int | None,
    tags: Sequence[KeyValue],
    name: str,
) -> WholeRun:
    """A free run: its record, open for whoever runs it elsewhere."""
    experiment = experiments.find_active(tx, caller, experiment_id)
    kept = {tag.key: tag.value for tag in map(check_tag, tags)}
    named = kept.get(RUN_NAME)
    if name and named and name != named:
        raise invalid(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values "
            f"(run_name='{name}', mlflow.runName='{named}')."
        )
    name = name or named or random_name(tx.rng)
    kept[RUN_NAME] = name
    run_id = JobId(tx.mint("job"))
    artifact = job_catalogue.register(tx, caller.project_id, caller.user.id, [run_id])[run_id]
    started = tx.now if start_time is None else moment(start_time)
    spec = JobSpec(name=shown_name(name), run=FreeRun(user[:256]))
    record = RunRecord(
        id=run_id,
        project_id=caller.project_id,
        user_id=caller.user.id,
        name=name[:100],
        free=True,
        said_user=user[:256],
        state=JobState.RUNNING,
        attempt=ATTEMPT,
        artifact_id=artifact,
        experiment=experiment.number,
        output_set=None,
        submitted_at=started,
        ended_at=None,
        deleted_at=None,
    )
    runs.add(tx, record, spec, JobState.RUNNING, started)
    _put_tags(tx, record, list(kept.items()))
    body = {"name": spec.name, "kind": "free", "experiment": experiment.number}
    tx.emit("job.running", run_id, project_id=caller.project_id, actor=caller.user.id, body=body)
    log = RunLog(tags=kept)
    return WholeRun(record, log, user or kept.get(USER) or caller.user.name, experiment.artifact_location)


def random_name(rng: random.Random) -> str:
    return f"{rng.choice(_ADJECTIVES)}-{rng.choice(_NOUNS)}-{rng.randrange(1000)}"


def shown_name(name: str) -> str:
    """The name as our own pages can show it."""
    text = "".join(
        "-" if c in "/\\" else c
        for c in unicodedata.normalize("NFC", name)
        if unicodedata.category(c)[0] != "C"
    )
    return text.strip()[:100].strip() or "run"


def update(
    tx: Tx, caller: Caller, run_id: str, *, status: str | None, end_time: int | None, name: str | None
) -> WholeRun:
    """A new state, end or name. The state of a job that Easel runs is Easel's business: it stays."""
    record = find_own(tx, caller, run_id)
    check_active(record)
    if status is not None and status not in _STATES:
        raise invalid(f"Invalid value \"{status}\" for parameter 'status' supplied: one of {sorted(_STATES)}")
    if record.free:
        values: dict[str, Any] = {}
        if status is not None:
            values["state"] = _STATES[status].value
        if end_time is not None:
            values["ended_at"] = moment(end_time)
        if (
            status is not None
            and _STATES[status] in TERMINAL
            and end_time is None
            and record.ended_at is None
        ):
            values["ended_at"] = tx.now
        if values:
            runs.change(tx, run_id, values)
        if status is not None and _STATES[status] is not record.state:
            kind = f"job.{_STATES[status].value}"
            tx.emit(kind, run_id, project_id=caller.project_id, actor=caller.user.id, body={})
    if name:
        runs.rename(tx, run_id, name, shown_name(name))
        _put_tags(tx, record, [(RUN_NAME, name)])
    return get(tx, caller, run_id)


def delete(tx: Tx, caller: Caller, run_id: str) -> None:
    record = find_own(tx, caller, run_id)
    if not record.free and record.state not in TERMINAL:
        raise invalid(f"The run {run_id} is a job that Easel runs: kill it before it is deleted.")
    runs.change(tx, run_id, {"deleted_at": tx.now})
    tx.emit("run.deleted", run_id, project_id=caller.project_id, actor=caller.user.id, body={})


def restore(tx: Tx, caller: Caller, run_id: str) -> None:
    find_own(tx, caller, run_id)
    runs.change(tx, run_id, {"deleted_at": None})
    tx.emit("run.restored", run_id, project_id=caller.project_id, actor=caller.user.id, body={})


def check_active(record: RunRecord) -> None:
    if record.deleted_at is not None:
        raise invalid(f"The run {record.id} must be in the 'active' state. Current state is deleted.")


def find_own(tx: Tx, caller: Caller, run_id: str) -> RunRecord:
    """A run that the caller may write to: their own, or any for an admin of the project."""
    record = find(tx, caller, run_id)
    if record.user_id != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied(f"run {run_id} is somebody else's: its owner or an admin of the project may log to it")
    return record


def _writable(tx: Tx, caller: Caller, run_id: str) -> RunRecord:
    check_run_id(run_id)
    runs.hold(tx, run_id)
    record = find_own(tx, caller, run_id)
    check_active(record)
    return record


def log_batch(
    tx: Tx,
    caller: Caller,
    run_id: str,
    *,
    metrics: Sequence[MetricPoint] = (),
    params: Sequence[KeyValue] = (),
    tags: Sequence[KeyValue] = (),
    single: bool = False,
) -> RunRecord:
    """All of it or nothing. `single` says that one thing was sent, for the wording of refusals."""
    for number, point in enumerate(metrics):
        check_metric(point, "" if single else f"metrics[{number}]")
    kept = [check_param(each, "" if single else f"params[{n}]") for n, each in enumerate(params)]
    given = [check_tag(each, "" if single else f"tags[{n}]") for n, each in enumerate(tags)]
    check_batch(metrics, params, tags)
    record = _writable(tx, caller, run_id)
    _log_params(tx, record, kept, single=single)
    run = LoggedRun(record.id, record.attempt, record.project_id, record.artifact_id)
    add_batch(tx, run, [Logged(p.key, p.step, p.value, 1000 * _dated(p.timestamp)) for p in metrics])
    named = next((tag.value for tag in reversed(given) if tag.key == RUN_NAME), None)
    if named:
        runs.rename(tx, run_id, named, shown_name(named))
    _put_tags(tx, record, given)
    return record


def _log_params(tx: Tx, record: RunRecord, params: Sequence[KeyValue], *, single: bool) -> None:
    if not params:
        return
    known = runs.param_values(tx, record.artifact_id, [param.key for param in params])
    other = [param for param in params if known.get(param.key, param.value) != param.value]
    if other and single:
        key, value = other[0]
        raise invalid(
            f"Changing param values is not allowed. Param with key='{key}' was already logged with "
            f"value='{known[key]}' for run ID='{record.id}'. Attempted logging new value '{value}'."
        )
    if other:
        told = [{"key": p.key, "old_value": known[p.key], "new_value": p.value} for p in other]
        raise invalid(
            f"Changing param values is not allowed. Params were already logged='{told}' for run ID='{record.id}'."
        )
    new = [
        NewTag(record.project_id, record.artifact_id, Kind.JOB, runs.PARAM + key, value, _number(value))
        for key, value in params
        if key not in known
    ]
    put_all(tx, new)


def _number(text: str) -> float | None:
    """A parameter that is a number is found by our own search as one."""
    try:
        number = float(text) if len(text) < 40 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _put_tags(tx: Tx, record: RunRecord, given: Sequence[tuple[str, str]]) -> None:
    put_all(
        tx,
        [
            NewTag(record.project_id, record.artifact_id, Kind.JOB, runs.tag_key(key), value)
            for key, value in given
        ],
    )


def set_tag(tx: Tx, caller: Caller, run_id: str, tag: KeyValue) -> None:
    """Every member may tag every run; only who may write to it renames it."""
    kept = check_tag(tag)
    if kept.key == RUN_NAME:
        update(tx, caller, run_id, status=None, end_time=None, name=kept.value)
        return
    record = find(tx, caller, run_id)
    check_active(record)
    _put_tags(tx, record, [kept])


def delete_tag(tx: Tx, caller: Caller, run_id: str, key: str) -> None:
    record = find(tx, caller, run_id)
    check_active(record)
    if not runs.remove_tag(tx, record.artifact_id, key):
        raise absent(f"No tag with name: {key} in run with id {run_id}")


def log_model(tx: Tx, caller: Caller, run_id: str, model_json: str) -> None:
    """The older way to say which models a run made: a list in a tag."""
    try:
        model = json.loads(model_json)
    except ValueError as error:
        raise invalid(f"Malformed model info. \n {model_json[:200]} \n is not a valid JSON.") from error
    wanted = {"artifact_path", "flavors", "utc_time_created", "run_id"}
    if not isinstance(model, Mapping) or wanted - set(model):
        lacking = sorted(wanted - set(model)) if isinstance(model, Mapping) else sorted(wanted)
        raise invalid(f"Model json is missing mandatory fields: {lacking}")
    record = _writable(tx, caller, run_id)
    try:
        before = json.loads(runs.tag_value(tx, record.artifact_id, MODEL_HISTORY) or "[]")
    except ValueError:
        before = []
    value = json.dumps([*before, dict(model)])
    if len(value) > 1_000_000:
        raise invalid(f"'{MODEL_HISTORY}' exceeds the maximum length of 1000000 characters")
    put_all(tx, [NewTag(record.project_id, record.artifact_id, Kind.JOB, MODEL_HISTORY, value)])


def log_models(tx: Tx, caller: Caller, run_id: str, uses: Sequence[ModelUse]) -> None:
    """Logged models that the run took or made."""
    record = _writable(tx, caller, run_id)
    runs.add_models(tx, record.id, uses)

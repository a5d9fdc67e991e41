"""Which examples are most likely mislabelled: by the loss of models that did not see them."""

from __future__ import annotations

from dataclasses import dataclass

from easel.errors import Conflict
from easel.flow.apps.best import best_of
from easel.flow.apps.infer import Models
from easel.flow.apps.memory import to_look
from easel.flow.apps.readable import need_examples
from easel.flow.apps.ready import owner_of
from easel.flow.apps.trial_job import trial_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.upload import Lake
from easel.ids import JobId
from easel.records.app import App, FedExample
from easel.records.identity import Caller
from easel.records.job import TERMINAL, JobState
from easel.store import app_examples, apps, jobs
from easel.store.engine import Tx

SUSPECT = "easel.flow.apps.trial:suspect"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`loss` under a model that was trained without the example: larger is stranger."""

    example: FedExample
    loss: float


@dataclass(frozen=True, slots=True)
class Suspects:
    """`judged` examples have a loss; `job` is the one that judges all of them, if it was asked for."""

    items: list[Suspicion]
    judged: int
    job: JobId | None
    state: str | None


def look_for_suspects(tx: Tx, caller: Caller, name: str) -> JobId:
    """A job that judges every example by models trained without it; while one is under way, that one."""
    app = need_examples(tx, caller, name)
    job = _job(tx, app)
    if job is not None and JobState(job[1]) not in TERMINAL:
        return job[0]
    owner = owner_of(tx, app)
    if owner is None or app.examples_set is None:
        raise Conflict(f"{name} has no examples to judge: feed some")
    arguments = {"program": app.program, "seed": 0, "off": app_examples.off(tx, app.id)}
    spec = trial_spec(app, SUSPECT, arguments, "wrong labels?", f"{app.name}-suspects", to_look(tx, app))
    made = submit_job(tx, owner, spec).id
    apps.note_suspects(tx, app.id, made)
    return made


def suspects(lake: Lake, models: Models, caller: Caller, name: str, limit: int) -> Suspects:
    """Returns the examples that are on, most suspicious first, as far as they were judged.

    By the job that judged all of them, or else by the validation of the best model so far.
    """
    with lake.store.read() as tx:
        app = need_examples(tx, caller, name)
        job = _job(tx, app)
        best = best_of(tx, app)
    source = None if job is None else job[2]
    if source is None and best is not None:
        source = best.model_set
    losses = {} if source is None else models.json(lake, caller, source, "losses.json") or {}
    order = sorted(losses, key=lambda digest: -losses[digest])
    found: list[Suspicion] = []
    with lake.store.read() as tx:
        for start in range(0, len(order), 500):
            part = app_examples.some(tx, app.id, order[start : start + 500])
            wanted = [part[d] for d in order[start : start + 500] if d in part and part[d].on]
            found += [Suspicion(example, losses[example.digest]) for example in wanted]
            if len(found) >= limit:
                break
    return Suspects(
        found[:limit], len(losses), None if job is None else job[0], None if job is None else job[1]
    )


def _job(tx: Tx, app: App) -> tuple[JobId, str, str | None] | None:
    """The newest job that looked for wrong labels: id, state, and its output once it is finished."""
    if app.suspects_job is None:
        return None
    row = jobs.rows(tx, [app.suspects_job], lock=False).get(app.suspects_job)
    if row is None:
        return None
    job = jobs.job_of(row)
    return job.id, job.state.value, job.output_set if job.state is JobState.FINISHED else None

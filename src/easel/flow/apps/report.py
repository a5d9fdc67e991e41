"""report: a job looks into the model that answers; its findings are kept, one record for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from easel.declare.parse import parse_program
from easel.errors import Conflict, InvalidInput
from easel.flow.apps.best import serving
from easel.flow.apps.infer import Models, served
from easel.flow.apps.memory import to_train
from easel.flow.apps.readable import need_examples
from easel.flow.apps.ready import STILL_VALID, metric_of
from easel.flow.apps.trial_job import JUDGING_LIMIT_S, trial_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.upload import Lake
from easel.flow.words.findings import FINDINGS
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.kinds import Task
from easel.match.templates import match_program
from easel.records.app import App, AppTrial
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job, JobState
from easel.store import app_examples, app_reports, app_trials, jobs
from easel.store.engine import Tx

REPORT = "easel.flow.apps.report_job:report"
MODEL = "model"


@dataclass(frozen=True, slots=True)
class Looked:
    """The job that looked into something, how it stands, and what it found once it is finished."""

    job: JobId | None
    state: str | None
    found: Mapping[str, Any] | None


def ask_for_report(tx: Tx, caller: Caller, name: str) -> JobId:
    """Start the job that looks into the model that answers; the one that did or does, if there is one."""
    app = need_examples(tx, caller, name)
    best = serving(tx, app)
    if best is None or best.model_set is None or app.examples_set is None:
        raise Conflict(f"{name} has no model to report on yet: feed examples and wait for one")
    if match_program(parse_program(app.program)).task not in (Task.CLASSIFY, Task.REGRESS):
        raise InvalidInput("a report is made of models that answer with classes or numbers")
    before = last_job(tx, app.id, MODEL, best.model_set)
    if before is not None and (before.state not in TERMINAL or before.state is JobState.FINISHED):
        return before.id
    candidate = stand_in(best, app_trials.trials(tx, app.id))
    arguments = {
        "program": app.program,
        "candidate": dict(candidate),
        "metric": metric_of(app),
        "seed": 0,
        "budget_s": JUDGING_LIMIT_S / 3,
        "off": app_examples.off(tx, app.id),
        **({} if app.vectors is None else {"vectors": app.vectors}),
    }
    need = to_train(tx, app, [Candidate.from_json(dict(candidate))], [best])
    spec = trial_spec(app, REPORT, arguments, "report", f"{app.name}-report", need)
    made = submit_job(tx, caller, spec)
    app_reports.note(tx, app.id, MODEL, best.model_set, made.id)
    return made.id


def stand_in(best: AppTrial, trials: Sequence[AppTrial]) -> Mapping[str, Any]:
    """The candidate that is trained anew: an ensemble cannot be, the best single model stands for it."""
    if best.candidate["family"] != "ensemble":
        return best.candidate
    single = [
        trial
        for trial in trials
        if trial.quality is not None
        and trial.candidate["family"] != "ensemble"
        and trial.examples >= STILL_VALID * best.examples
    ]
    if not single:
        raise Conflict("the models of this ensemble are gone: wait for the next one")
    return max(single, key=lambda trial: trial.quality or 0.0).candidate


def last_job(tx: Tx, app_id: AppId, kind: str, subject: str) -> Job | None:
    """Returns the newest job that looked into it, as far as it still is on record."""
    job_id = app_reports.job_of(tx, app_id, kind, subject)
    row = None if job_id is None else jobs.rows(tx, [job_id], lock=False).get(job_id)
    return None if row is None else jobs.job_of(row)


def looked_into(
    lake: Lake, models: Models, caller: Caller, app: App, kind: str, subject: str, file: str
) -> Looked:
    """What is known of it so far."""
    with lake.store.read() as tx:
        job = last_job(tx, app.id, kind, subject)
    if job is None:
        return Looked(None, None, None)
    done = job.state is JobState.FINISHED and job.output_set is not None
    found = models.json(lake, caller, job.output_set or "", file) if done else None
    return Looked(job.id, job.state.value, found)


def findings_of(lake: Lake, models: Models, caller: Caller, name: str) -> Looked:
    """What was found about the model that answers now."""
    with lake.store.read() as tx:
        need_examples(tx, caller, name)
    app, best = served(lake, caller, name)
    return looked_into(lake, models, caller, app, MODEL, best.model_set or "", FINDINGS)

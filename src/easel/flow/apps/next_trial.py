"""The service loop's two steps: choose a trial for an idle device, and take note of the trials that ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from easel.declare.job import JobSpec, RetryRule, Trial
from easel.declare.resources import Resources
from easel.errors import EaselError
from easel.flow.apps.gather import STILL_VALID, Ready, gather
from easel.flow.apps.guests import Guest
from easel.flow.jobs.submit import submit_job
from easel.match.candidate import Candidate
from easel.records.app import App, AppTrial
from easel.records.decision import Decision, LeaveIdle, StartTrial
from easel.records.job import TERMINAL, Job, JobState
from easel.schedule.policies import Policy
from easel.schedule.state import Device
from easel.store import app_examples, app_trials, apps, jobs
from easel.store.engine import Tx

log = logging.getLogger("easel.learning")
LEARN = "easel.flow.apps.trial:learn"
TRIAL_LIMIT_S = 600.0


def next_trial(
    tx: Tx, policy: Policy, device: Device, now: float, seed: int = 0, guests: Sequence[Guest] = ()
) -> tuple[Decision, Job | None]:
    """Ask the policy, and submit the trial it chose as a job of the app's owner, decision and job in one."""
    refused: set[str] = set()
    while True:
        pool = gather(tx, device, now, guests, frozenset(refused))
        if pool is None:
            return LeaveIdle(device.name, "no app has anything to learn from yet"), None
        decision = policy.decide(pool.state)
        if not isinstance(decision, StartTrial):
            return decision, None
        for guest in guests:
            if guest.tenant.name == decision.tenant:
                return decision, guest.start(tx, decision)
        chosen = pool.ready[decision.tenant]
        try:
            return decision, _start(tx, chosen, chosen.candidates[decision.index], decision, seed)
        except EaselError as error:
            # A budget that is spent or a quota that is full is its owner's matter: the next app has its turn.
            log.info("no trial for app %s: %s", chosen.app.name, error)
            refused.add(decision.tenant)


def _start(tx: Tx, ready: Ready, candidate: Candidate, decision: StartTrial, seed: int) -> Job:
    app = ready.app
    arguments: dict[str, Any] = {
        "program": app.program,
        "candidate": candidate.to_json(),
        "seed": seed,
        "budget_s": TRIAL_LIMIT_S,
        "off": app_examples.off(tx, app.id),
    }
    if app.vectors is not None:
        arguments["vectors"] = app.vectors
    if app.metric is not None:
        arguments["metric"] = app.metric
    job = submit_job(tx, ready.owner, trial_spec(app, LEARN, arguments, candidate.name, f"{app.name}-model"))
    app_trials.add(tx, app.id, job.id, candidate.to_json(), asdict(decision), ready.examples)
    body = {"candidate": candidate.name, "job": job.id, "why": decision.reasons.rule}
    tx.emit("app.trial", app.id, project_id=app.project_id, actor=app.user_id, body=body)
    return job


def trial_spec(app: App, function: str, arguments: dict[str, Any], what: str, output: str) -> JobSpec:
    """A trial on the app's examples."""
    return JobSpec(
        name=f"{app.name}: {what}"[:100],
        run=Trial(function, arguments),
        input=app.examples_set,
        output_set=output,
        resources=Resources(1.0, 2048),
        retry=RetryRule(lost=2),
        time_limit_s=2 * TRIAL_LIMIT_S,
        tags={"app": app.name},
    )


def settle(tx: Tx) -> list[AppTrial]:
    """Trials whose jobs have ended: their quality becomes an observation, their model may serve from now on."""
    settled = []
    for trial in app_trials.trials(tx, running=True):
        row = jobs.rows(tx, [trial.job_id]).get(trial.job_id)
        job = None if row is None else jobs.job_of(row)
        if job is not None and job.state not in TERMINAL:
            continue
        quality = None if job is None else _quality(job)
        took = 0.0
        if job is not None and job.ended_at and job.started_at:
            took = (job.ended_at - job.started_at).total_seconds()
        model = job.output_set if job is not None and quality is not None else None
        before = best_of(tx, apps.get(tx, trial.app_id))
        if app_trials.end(tx, trial.job_id, quality, took, model):
            settled.append(trial)
            _tell(tx, trial, before)
    return settled


def _tell(tx: Tx, trial: AppTrial, before: AppTrial | None) -> None:
    app = apps.get(tx, trial.app_id)
    now = best_of(tx, app)
    if now is not None and now.job_id == trial.job_id:
        body = {
            "candidate": Candidate.from_json(dict(now.candidate)).name,
            "quality": now.quality,
            "model": now.model_set,
            "before": None if before is None else before.quality,
        }
        tx.emit("app.improved", app.id, project_id=app.project_id, actor=app.user_id, body=body)


def _quality(job: Job) -> float | None:
    if job.state is not JobState.FINISHED or job.result is None or job.result.get("quality") is None:
        return None
    quality = float(job.result["quality"])
    return quality if math.isfinite(quality) else None


def best_of(tx: Tx, app: App) -> AppTrial | None:
    """The trial whose model is the best so far, as far as it was found on about the examples of today."""
    return app_trials.best(tx, app.id, STILL_VALID * app_examples.count_on(tx, app.id))


def best_among(trials: Iterable[AppTrial], examples: int) -> AppTrial | None:
    """As `best_of`, for who has read all trials of an app with `examples` switched on."""
    served = [trial for trial in trials if trial.quality is not None and trial.model_set is not None]
    fresh = [trial for trial in served if trial.examples >= STILL_VALID * examples]
    if fresh:
        return max(fresh, key=lambda trial: trial.quality or 0.0)
    return max(served, key=lambda trial: (trial.examples, trial.quality or 0.0), default=None)


def serving(tx: Tx, app: App) -> AppTrial | None:
    """The trial whose model answers: the pinned one, or the best so far."""
    pinned = None if app.pinned is None else app_trials.of_model(tx, app.id, app.pinned)
    return pinned or best_of(tx, app)

"""The service loop's two steps: choose a trial for an idle device, and take note of the trials that ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from easel.declare.job import JobSpec, RetryRule, Trial
from easel.declare.parse import parse_program
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.errors import NotFound
from easel.flow.apps.pool import Played, Visit, replay, tenant_of
from easel.flow.jobs.submit import submit_job
from easel.ids import TokenId
from easel.match.candidate import Candidate
from easel.match.propose import propose_candidates
from easel.match.summary import DataSummary
from easel.records.app import App, AppTrial
from easel.records.decision import Decision, LeaveIdle, Reasons, StartTrial
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job, JobState
from easel.schedule.policies import Policy
from easel.schedule.state import Device, PoolState, Tenant
from easel.store import apps, identity, jobs
from easel.store.engine import Tx

LEARN = "easel.flow.apps.trial:learn"
STILL_VALID = 0.8
"""A result counts as long as it was found on this share of the examples that are switched on now."""
TRIAL_LIMIT_S = 600.0


def candidates_of(app: App) -> tuple[Candidate, ...]:
    """The pool of an app, from its program and the summary of what it was fed."""
    if app.summary is None:
        return ()
    return propose_candidates(parse_program(app.program), DataSummary(**app.summary))


@dataclass(frozen=True)
class Guest:
    """Somebody beside the apps who shares the pool under the same policy: `tenant` as it would join now.

    `starts` are the moments at which it was served before; `start` carries out the decision to serve it again.
    """

    tenant: Tenant
    joined_at: datetime
    starts: tuple[datetime, ...]
    start: Callable[[Tx, StartTrial], Job | None]


def next_trial(
    tx: Tx, policy: Policy, device: Device, now: float, seed: int = 0, guests: Sequence[Guest] = ()
) -> tuple[Decision, Job | None]:
    """Ask the policy, and submit the trial it chose as a job of the app's owner, decision and job in one."""
    waiting = [(app, candidates_of(app)) for app in apps.all_apps(tx)]
    ready = {app.id: (app, found) for app, found in waiting if found and _learnable(tx, app)}
    owners = {app_id: _owner(tx, app) for app_id, (app, _) in ready.items()}
    ready = {app_id: one for app_id, one in ready.items() if owners[app_id] is not None}
    counts = {app_id: sum(e.on for e in apps.examples(tx, app.id)) for app_id, (app, _) in ready.items()}
    past = [t for t in apps.trials(tx) if t.app_id in ready and _still_counts(t, counts[t.app_id])]
    qualities: dict[str, dict[str, float]] = {}
    for trial in past:
        if trial.quality is not None:
            qualities.setdefault(trial.app_id, {})[Candidate.from_json(dict(trial.candidate)).name] = (
                trial.quality
            )
    tenants = [
        tenant_of(app.id, found, [q for other, q in qualities.items() if other != app.id])
        for app, found in ready.values()
    ]
    if not tenants and not guests:
        return LeaveIdle(device.name, "no app has anything to learn from yet"), None
    played = [
        (trial.started_at, _played(trial, {c.name: k for k, c in enumerate(ready[trial.app_id][1])}))
        for trial in past
    ]
    history = [(at, p) for at, p in played if p is not None]
    decision = policy.decide(with_guests(tenants, history, guests, device, now))
    if not isinstance(decision, StartTrial):
        return decision, None
    for guest in guests:
        if guest.tenant.name == decision.tenant:
            return decision, guest.start(tx, decision)
    app, found = ready[next(key for key in ready if key == decision.tenant)]
    owner = owners[app.id]
    assert owner is not None
    return decision, _start(tx, owner, app, found[decision.index], decision, counts[app.id], seed)


def with_guests(
    tenants: Sequence[Tenant],
    history: Sequence[tuple[datetime, Played]],
    guests: Sequence[Guest],
    device: Device,
    now: float,
) -> PoolState:
    """The pool with everybody in it. Whoever was served, when it was whose turn counts for all alike."""
    moments: list[tuple[datetime, Played | Visit]] = list(history)
    for guest in guests:
        moments += [(at, Visit(guest.tenant.name)) for at in guest.starts]
    ordered = sorted(moments, key=lambda each: each[0])
    state = replay(tenants, [each for _, each in ordered], device, now)
    everybody = dict(state.tenants)
    for guest in guests:
        turns = [i + 1 for i, (_, each) in enumerate(ordered) if each == Visit(guest.tenant.name)]
        joined = sum(at < guest.joined_at for at, _ in ordered)
        everybody[guest.tenant.name] = guest.tenant.changed(served_at=max([joined, *turns]))
    return replace(state, tenants=everybody)


def _learnable(tx: Tx, app: App) -> bool:
    """At least two examples on in two strata, or four where there are no classes."""
    by_stratum: dict[str, int] = {}
    for example in apps.examples(tx, app.id):
        by_stratum[example.stratum] = by_stratum.get(example.stratum, 0) + example.on
    if set(by_stratum) == {""}:
        return by_stratum[""] >= 4
    return sum(count >= 2 for count in by_stratum.values()) >= 2


def _still_counts(trial: AppTrial, now: int) -> bool:
    return not trial.ended or trial.examples >= STILL_VALID * now


def _start(
    tx: Tx, owner: Caller, app: App, candidate: Candidate, decision: StartTrial, count: int, seed: int
) -> Job:
    off = [example.digest for example in apps.examples(tx, app.id) if not example.on]
    arguments: dict[str, Any] = {
        "program": app.program,
        "candidate": candidate.to_json(),
        "seed": seed,
        "budget_s": TRIAL_LIMIT_S,
        "off": off,
    }
    if app.metric is not None:
        arguments["metric"] = app.metric
    spec = JobSpec(
        name=f"{app.name}: {candidate.name}"[:100],
        run=Trial(LEARN, arguments),
        input=app.examples_set,
        output_set=f"{app.name}-model",
        resources=Resources(1.0, 2048),
        retry=RetryRule(lost=2),
        time_limit_s=2 * TRIAL_LIMIT_S,
        tags={"app": app.name},
    )
    job = submit_job(tx, owner, spec)
    apps.add_trial(tx, app.id, job.id, candidate.to_json(), asdict(decision), count)
    return job


def _owner(tx: Tx, app: App) -> Caller | None:
    """In whose name its trials run; nobody, and so no trials, once the owner has left the project."""
    user, project = identity.find_user(tx, app.user_id), identity.find_project(tx, app.project_id)
    if user is None or project is None or user.disabled_at is not None or project.archived_at is not None:
        return None
    if user.platform_admin:
        return Caller(user, TokenId("tok_platform"), project, Role.ADMIN)
    try:
        role = identity.get_member(tx, app.project_id, app.user_id).role
    except NotFound:
        return None
    return Caller(user, TokenId("tok_platform"), project, role)


def _played(trial: AppTrial, places: Mapping[str, int]) -> Played | None:
    """The stored decision as the scheduler's value; nothing if its candidate is no longer proposed."""
    raw = dict(trial.decision)
    if raw["candidate"] not in places:
        return None
    reasons = Reasons(**{**raw["reasons"], "runner_up": None})
    start = StartTrial(
        raw["tenant"], raw["candidate"], places[raw["candidate"]], raw["device"], reasons, raw["fraction"]
    )
    if not trial.ended:
        return Played(start, None)
    return Played(start, math.nan if trial.quality is None else trial.quality, trial.seconds or 0.0)


def settle(tx: Tx) -> list[AppTrial]:
    """Trials whose jobs have ended: their quality becomes an observation, their model may serve from now on."""
    settled = []
    for trial in [t for t in apps.trials(tx) if not t.ended]:
        row = jobs.rows(tx, [trial.job_id]).get(trial.job_id)
        job = None if row is None else jobs.job_of(row)
        if job is None or job.state not in TERMINAL:
            continue
        quality = _quality(job)
        took = (job.ended_at - job.started_at).total_seconds() if job.ended_at and job.started_at else 0.0
        if apps.end_trial(tx, trial.job_id, quality, took, job.output_set if quality is not None else None):
            settled.append(trial)
    return settled


def _quality(job: Job) -> float | None:
    if job.state is not JobState.FINISHED or job.result is None:
        return None
    quality = float(job.result["quality"])
    return quality if math.isfinite(quality) else None


def best_trial(trials: Sequence[AppTrial]) -> AppTrial | None:
    """The one whose model answers: the highest quality, the earlier of equals."""
    done = [trial for trial in trials if trial.quality is not None and trial.model_set is not None]
    return max(done, key=lambda trial: trial.quality or 0.0) if done else None

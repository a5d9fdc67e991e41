"""What the scheduler is shown: every app that can learn, what was tried for it, what its candidates cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.declare.parse import parse_program
from easel.declare.roles import Role
from easel.errors import NotFound
from easel.flow.apps.costs import calibrated
from easel.flow.apps.guests import Guest, with_guests
from easel.flow.apps.pool import Played, as_scores, tenant_of
from easel.ids import AppId, TokenId
from easel.match.candidate import Candidate
from easel.match.metrics import metric_for
from easel.match.propose import Choices, propose_candidates
from easel.match.summary import DataSummary
from easel.match.templates import match_program
from easel.records.app import App, AppTrial, ExampleCounts
from easel.records.decision import Reasons, StartTrial
from easel.records.identity import Caller
from easel.schedule.state import Device, PoolState
from easel.store import app_examples, app_trials, apps, identity
from easel.store.engine import Tx

STILL_VALID = 0.8
"""A result counts as long as it was found on this share of the examples that are switched on now."""


@dataclass(frozen=True)
class Ready:
    """An app that can learn: in whose name, from what, by which means."""

    app: App
    owner: Caller
    candidates: tuple[Candidate, ...]
    examples: int


@dataclass(frozen=True)
class Pool:
    """All apps that can learn, and the scheduler's view of them."""

    ready: Mapping[str, Ready]
    state: PoolState


def gather(
    tx: Tx,
    device: Device,
    now: float,
    guests: Sequence[Guest] = (),
    without: frozenset[str] = frozenset(),
) -> Pool | None:
    """The pool as the database tells it, less the apps `without`; nothing while no app can learn."""
    everything = apps.all_apps(tx)
    counts = app_examples.counts(tx, [app.id for app in everything])
    past = app_trials.trials(tx)
    ready: dict[str, Ready] = {}
    for app in everything:
        able = app.id not in without and learnable(app, counts[app.id], now)
        owner = owner_of(tx, app) if able else None
        if owner is not None:
            ready[app.id] = Ready(app, owner, candidates_of(app), counts[app.id].total_on)
    if not ready and not guests:
        return None
    known = [(_candidate(trial), trial) for trial in past]
    of_pool = [t for t in past if t.app_id in ready and _still_counts(t, ready[t.app_id].examples)]
    qualities: dict[str, dict[str, float]] = {}
    for candidate, trial in known:
        if trial.quality is not None:
            qualities.setdefault(trial.app_id, {})[candidate.name] = trial.quality
    metrics = {app.id: metric_of(app) for app in everything}
    scores = {app_id: as_scores(metrics[AppId(app_id)], found) for app_id, found in qualities.items()}
    ran = [(candidate, t.seconds or 0.0) for candidate, t in known if t.quality is not None]
    costed = calibrated({app_id: one.candidates for app_id, one in ready.items()}, ran)
    tenants = [
        tenant_of(app_id, candidates, [found for other, found in scores.items() if other != app_id])
        for app_id, candidates in costed.items()
    ]
    places = {app_id: {c.name: k for k, c in enumerate(one.candidates)} for app_id, one in ready.items()}
    played = [
        (trial.started_at, _played(trial, places[trial.app_id], scores.get(trial.app_id, {})))
        for trial in of_pool
    ]
    history = [(at, one) for at, one in played if one is not None]
    return Pool(ready, with_guests(tenants, history, guests, device, now))


def candidates_of(app: App) -> tuple[Candidate, ...]:
    """The pool of an app, from its program and the summary of what it was fed."""
    if app.summary is None:
        return ()
    choices = Choices(app.rates_inside, app.vector_size)
    return propose_candidates(parse_program(app.program), DataSummary(**app.summary), choices)


def metric_of(app: App) -> str:
    """Its own, or the usual one of its task."""
    return metric_for(match_program(parse_program(app.program)).task, app.metric)[0]


def learnable(app: App, counts: ExampleCounts, now: float) -> bool:
    """Enough examples, and no feed half done."""
    waiting = app.more_until is not None and app.more_until.timestamp() > now
    return not waiting and lacking(app, counts) is None


def lacking(app: App, counts: ExampleCounts) -> str | None:
    """What an app needs before it can learn: two examples on in each of two classes, or four of numbers."""
    if app.summary is None:
        return "examples to learn from"
    if set(counts.on) <= {""}:
        enough, what = counts.total_on >= 4, "four examples"
    else:
        enough = sum(count >= 2 for count in counts.on.values()) >= 2
        what = "two examples each of at least two classes"
    if enough:
        return None
    there = ", ".join(f"{count} {name}".strip() for name, count in sorted(counts.on.items())[:5]) or "none"
    return f"{what} (switched on now: {there})"


def owner_of(tx: Tx, app: App) -> Caller | None:
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


def _candidate(trial: AppTrial) -> Candidate:
    return Candidate.from_json(dict(trial.candidate))


def _still_counts(trial: AppTrial, now: int) -> bool:
    return not trial.ended or trial.examples >= STILL_VALID * now


def _played(trial: AppTrial, places: Mapping[str, int], scores: Mapping[str, float]) -> Played | None:
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
    reached = math.nan if trial.quality is None else scores[raw["candidate"]]
    return Played(start, reached, trial.seconds or 0.0)

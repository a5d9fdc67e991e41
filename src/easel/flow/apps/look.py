"""How an app stands: best model, what runs, what comes next, and what was weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.flow import why
from easel.flow.apps.best import best_among, luck_among, shown_best
from easel.flow.apps.ready import lacking, metric_of
from easel.flow.words.reasons import after_whom, hope, pack_others, plain, slice_until
from easel.ids import ProjectId
from easel.match.candidate import Candidate
from easel.match.metrics import SPREAD, metric_for
from easel.match.templates import match_program
from easel.records.app import App, AppTrial, ExampleCounts
from easel.records.decision import Reasons, RunnerUp, StartTrial
from easel.records.identity import Caller
from easel.records.standing import Account
from easel.records.tenant import Terms
from easel.schedule.state import PoolDevice, PoolState
from easel.store import app_examples, app_trials, apps, studies, tenants
from easel.store.engine import Tx
from easel.tenancy.pool_view import PoolView

ANY = PoolDevice("any")


@dataclass(frozen=True, slots=True)
class Next:
    """What the policy would run for an app if a device were idle now."""

    candidate: str
    why: str
    first: bool
    """Whether it is the very next trial of the whole pool."""
    details: str = ""
    chance: float = 0.0
    gain: float = 0.0


@dataclass(frozen=True, slots=True)
class AppSummary:
    """One line of `easel apps ls`."""

    app: App
    template: str
    metric: str
    examples: int
    switched_off: int
    trials: int
    running: tuple[str, ...]
    best: AppTrial | None
    serving: AppTrial | None
    why: str | None
    next: Next | None
    lacks: str | None
    account: Account
    terms: Terms
    luck: float | None = None

    @property
    def last_improvement_at(self) -> datetime | None:
        return None if self.best is None else self.best.ended_at or self.best.started_at


def find_app(tx: Tx, caller: Caller, name: str) -> App:
    """Returns an app of the caller's project; NotFound where it has none of that name."""
    return apps.find(tx, caller.project_id, name)


def names(tx: Tx, caller: Caller) -> list[str]:
    """Returns the names of all apps of the caller's project."""
    return apps.names_in(tx, caller.project_id)


def list_apps(tx: Tx, caller: Caller) -> list[App]:
    """Returns all apps of the caller's project."""
    return apps.list_apps(tx, caller.project_id)


def standing(tx: Tx, app: App, pool: PoolView | None = None) -> AppSummary:
    return standings(tx, [app], pool)[0]


def standings(tx: Tx, found: Sequence[App], pool: PoolView | None = None) -> list[AppSummary]:
    """Apps of one project as they stand; without the pool nothing is known of what comes next.

    However many they are, their trials are asked for once.
    """
    if not found:
        return []
    ids = [app.id for app in found]
    counts, trials = app_examples.counts(tx, ids), app_trials.trials_of(tx, ids)
    names = names_of(tx, found[0].project_id)
    terms = tenants.some_terms(tx, list(ids))
    bests: dict[str, float | None] = {
        app.id: shown_best(trials[app.id], counts[app.id].total_on) for app in found
    }
    after = {} if pool is None else following(pool, found, names, bests)
    first = None if pool is None else why.first_of(pool)
    summaries = []
    for app in found:
        mine, lacks = trials[app.id], lacking(app, counts[app.id])
        account = why.of_app(tx, pool, app, lacks, mine, names, first)
        summaries.append(
            _standing(app, counts[app.id], mine, after.get(app.id), lacks, account, terms[app.id])
        )
    return summaries


def _standing(
    app: App,
    counts: ExampleCounts,
    trials: Sequence[AppTrial],
    following: Next | None,
    lacks: str | None,
    account: Account,
    terms: Terms,
) -> AppSummary:
    template = match_program(parse_program(app.program))
    metric = metric_for(template.task, app.metric)[0]
    best = best_among(trials, counts.total_on)
    pinned = next((trial for trial in trials if app.pinned and trial.model_set == app.pinned), None)
    return AppSummary(
        app=app,
        template=template.name,
        metric=metric,
        examples=counts.total_on + counts.off,
        switched_off=counts.off,
        trials=len(trials),
        running=tuple(candidate_name(trial) for trial in trials if not trial.ended),
        best=best,
        serving=pinned or best,
        why=why_chosen(trials, len(trials) - 1, metric) if trials else None,
        next=following,
        lacks=lacks,
        account=account,
        terms=terms,
        luck=luck_among(trials, counts.total_on),
    )


def why_chosen(trials: Sequence[AppTrial], k: int, metric: str) -> str:
    """Why trial number `k` was chosen, in plain words."""
    chosen = trials[k]
    before = [
        t
        for t in trials
        if t.quality is not None and t.ended_at is not None and t.ended_at <= chosen.started_at
    ]
    best = shown_best(before, chosen.examples)
    reasons, until = reasons_of(chosen.decision, {}), slice_until(chosen.decision)
    others = pack_others(chosen.decision)
    return plain(reasons, candidate_name(chosen), metric, best=best, past=True, until=until, beside=others)


def names_of(tx: Tx, project_id: ProjectId) -> dict[str, str]:
    """Returns the names of this project's apps and studies by id; all others stay unnamed."""
    found: dict[str, str] = {app.id: app.name for app in apps.list_apps(tx, project_id)}
    return {**found, **studies.names(tx, project_id)}


def candidate_name(trial: AppTrial) -> str:
    return Candidate.from_json(dict(trial.candidate)).name


def reasons_of(decision: Mapping[str, Any], names: Mapping[str, str]) -> Reasons:
    """Stored reasons, with apps by name; what belongs to another project is not named."""
    raw = dict(decision["reasons"])
    other = raw.pop("runner_up", None)
    return shown_reasons(Reasons(**raw, runner_up=RunnerUp(**other) if other else None), names)


def shown_reasons(reasons: Reasons, names: Mapping[str, str]) -> Reasons:
    other = reasons.runner_up
    if other is None:
        return reasons
    if other.tenant not in names:
        return replace(reasons, runner_up=RunnerUp("another project", "a trial", other.acquisition))
    return replace(reasons, runner_up=replace(other, tenant=names[other.tenant]))


def following(
    pool: PoolView, found: Sequence[App], names: Mapping[str, str], bests: Mapping[str, float | None]
) -> dict[str, Next]:
    """Returns what the policy would run next for each of these apps that may run something, by id.

    `names` are those of the project's apps, by id; `bests` the scores that are shown of their models.
    """
    first = pool.decide(ANY)
    leads = {member: lead for lead, offer in pool.offers.items() for member in offer.members}
    after: dict[str, Next] = {}
    for app in found:
        lead = leads.get(app.id)
        if lead is None:
            continue
        is_first = isinstance(first, StartTrial) and first.tenant == lead
        decision = first if is_first else pool.policy.decide(_alone(pool.state.on(ANY, pool.now), lead))
        if not isinstance(decision, StartTrial):
            continue
        reasons = decision.reasons
        best = None if pool.offers[lead].best is None else bests.get(app.id)
        until = None if decision.slice is None else decision.slice.share
        told = plain(reasons, decision.candidate, metric_of(app), best=best, until=until)
        if not is_first and isinstance(first, StartTrial):
            told = f"{told} {after_whom(names.get(first.tenant))}"
            ahead = RunnerUp(first.tenant, first.candidate, first.reasons.acquisition)
            reasons = replace(reasons, runner_up=ahead)
        found_hope = hope(reasons)
        after[app.id] = Next(
            decision.candidate,
            told,
            is_first,
            shown_reasons(reasons, names).numbers(),
            found_hope.probability,
            found_hope.gain,
        )
    return after


def _alone(state: PoolState, name: str) -> PoolState:
    return replace(state, tenants={name: state.tenants[name]})


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is believed of one candidate: `mean` ± `deviation` of its score, and what it would cost."""

    candidate: str
    state: str
    mean: float
    deviation: float
    cost_s: float
    quality: float | None
    low: float = 0.0
    high: float = 1.0


def prospects(tx: Tx, pool: PoolView, app: App) -> Sequence[Prospect]:
    """The posterior over all candidates of an app, best first."""
    lead = pool.lead_of(app.id)
    if lead is None:
        return []
    tenant = pool.state.tenants[lead]
    tried = {trial.name: trial for trial in app_trials.trials(tx, app.id)}
    mean, deviation = np.asarray(tenant.belief.mean), np.asarray(tenant.belief.sd)
    found = []
    for k, candidate in enumerate(tenant.candidates):
        trial = tried.get(candidate) if tenant.taken[k] else None
        state = "open" if trial is None else _state(trial)
        quality = None if trial is None else trial.quality
        m, s = min(max(float(mean[k]), 0.0), tenant.ceiling), float(deviation[k])
        low, high = max(m - SPREAD * s, 0.0), min(m + SPREAD * s, tenant.ceiling)
        found.append(Prospect(candidate, state, m, s, float(tenant.cost[k]), quality, low, high))
    return sorted(found, key=lambda one: -one.mean)


def _state(trial: AppTrial) -> str:
    if not trial.ended:
        return "running"
    return "failed" if trial.quality is None else "done"


@dataclass(frozen=True, slots=True)
class TrialView:
    """A decision with its reasons and what came of it."""

    trial: AppTrial
    candidate: str
    state: str
    why: str
    expected: float
    deviation: float
    cost_s: float
    details: str = ""


def trial_views(tx: Tx, caller: Caller, name: str) -> list[TrialView]:
    """Returns the app's trials in the order of the decisions."""
    app = apps.find(tx, caller.project_id, name)
    names, metric = names_of(tx, app.project_id), metric_of(app)
    trials = app_trials.trials(tx, app.id)
    found = []
    for k, trial in enumerate(trials):
        reasons = reasons_of(trial.decision, names)
        expected = min(max(reasons.mean, 0.0), 1.0)
        found.append(
            TrialView(
                trial,
                candidate_name(trial),
                _state(trial),
                why_chosen(trials, k, metric),
                expected,
                reasons.deviation,
                reasons.cost,
                reasons.numbers(),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Improvement:
    """A trial that was better than all before."""

    at: datetime
    quality: float
    candidate: str
    model: str


def progress(tx: Tx, caller: Caller, name: str) -> list[Improvement]:
    """The best score over time."""
    app = apps.find(tx, caller.project_id, name)
    found: list[Improvement] = []
    done = [t for t in app_trials.trials(tx, app.id) if t.quality is not None and t.model_set is not None]
    for trial in sorted(done, key=lambda t: t.ended_at or t.started_at):
        if not found or (trial.quality or 0.0) > found[-1].quality:
            found.append(
                Improvement(
                    trial.ended_at or trial.started_at,
                    trial.quality or 0.0,
                    candidate_name(trial),
                    trial.model_set or "",
                )
            )
    return found

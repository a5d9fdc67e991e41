"""How an app stands: best model, what runs, what comes next, and what was weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.flow.apps.gather import Pool, gather, lacking
from easel.flow.apps.next_trial import best_among
from easel.match.candidate import Candidate
from easel.match.metrics import metric_for
from easel.match.templates import match_program
from easel.records.app import App, AppTrial, ExampleCounts
from easel.records.decision import Reasons, RunnerUp, StartTrial
from easel.records.identity import Caller
from easel.schedule.policies import Policy
from easel.schedule.state import Device, PoolState
from easel.store import app_examples, app_trials, apps
from easel.store.engine import Tx

ANY = Device("any")


@dataclass(frozen=True, slots=True)
class Next:
    """What the policy would run for an app if a device were idle now."""

    candidate: str
    why: str
    first: bool
    """Whether it is the very next trial of the whole pool."""


@dataclass(frozen=True, slots=True)
class Standing:
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
    lacks: str | None = None

    @property
    def last_improvement_at(self) -> datetime | None:
        return None if self.best is None else self.best.ended_at or self.best.started_at


def standing(tx: Tx, app: App, following: Mapping[str, Next]) -> Standing:
    return standings(tx, [app], following, _names(tx, app))[0]


def standings(
    tx: Tx, found: Sequence[App], following: Mapping[str, Next], names: Mapping[str, str]
) -> list[Standing]:
    """`names` are those of the project's apps, by id. However many they are, their trials are asked for once."""
    ids = [app.id for app in found]
    counts, trials = app_examples.counts(tx, ids), app_trials.trials_of(tx, ids)
    return [_standing(app, counts[app.id], trials[app.id], following.get(app.id), names) for app in found]


def _standing(
    app: App,
    counts: ExampleCounts,
    trials: Sequence[AppTrial],
    following: Next | None,
    names: Mapping[str, str],
) -> Standing:
    template = match_program(parse_program(app.program))
    best = best_among(trials, counts.total_on)
    pinned = next((trial for trial in trials if app.pinned and trial.model_set == app.pinned), None)
    return Standing(
        app=app,
        template=template.name,
        metric=metric_for(template.task, app.metric)[0],
        examples=counts.total_on + counts.off,
        switched_off=counts.off,
        trials=len(trials),
        running=tuple(candidate_name(trial) for trial in trials if not trial.ended),
        best=best,
        serving=pinned or best,
        why=reasons_of(trials[-1].decision, names).sentence() if trials else None,
        next=following,
        lacks=lacking(app, counts),
    )


def _names(tx: Tx, app: App) -> dict[str, str]:
    """The apps that people of this project may know about, by id."""
    return {one.id: one.name for one in apps.list_apps(tx, app.project_id)}


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


def following(tx: Tx, policy: Policy) -> dict[str, Next]:
    """For every app of the pool, by id, what the policy would run next for it."""
    pool = gather(tx, ANY, tx.now.timestamp())
    if pool is None:
        return {}
    first = policy.decide(pool.state)
    found = {}
    for app_id, ready in pool.ready.items():
        decision = policy.decide(_alone(pool.state, app_id))
        if isinstance(decision, StartTrial):
            is_first = isinstance(first, StartTrial) and first.tenant == app_id
            reasons = first.reasons if is_first and isinstance(first, StartTrial) else decision.reasons
            why = shown_reasons(reasons, _names(tx, ready.app)).sentence()
            if not is_first and isinstance(first, StartTrial):
                why = f"{why}; another app goes first: it scores {first.reasons.acquisition:.3g}"
            found[app_id] = Next(decision.candidate, why, is_first)
    return found


def _alone(state: PoolState, app_id: str) -> PoolState:
    return replace(state, tenants={app_id: state.tenants[app_id]})


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is believed of one candidate: `mean` ± `deviation` of its score, and what it would cost."""

    candidate: str
    state: str
    mean: float
    deviation: float
    cost_s: float
    quality: float | None


def prospects(tx: Tx, caller: Caller, name: str) -> Sequence[Prospect]:
    """The posterior over all candidates of an app, best first."""
    app = apps.find(tx, caller.project_id, name)
    pool: Pool | None = gather(tx, ANY, tx.now.timestamp())
    if pool is None or app.id not in pool.ready:
        return []
    tenant = pool.state.tenants[app.id]
    tried = {candidate_name(trial): trial for trial in app_trials.trials(tx, app.id)}
    mean, deviation = np.asarray(tenant.belief.mean), np.asarray(tenant.belief.sd)
    found = []
    for k, candidate in enumerate(tenant.candidates):
        trial = tried.get(candidate) if tenant.taken[k] else None
        state = "open" if trial is None else _state(trial)
        quality = None if trial is None else trial.quality
        found.append(
            Prospect(candidate, state, float(mean[k]), float(deviation[k]), float(tenant.cost[k]), quality)
        )
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


def trial_views(tx: Tx, caller: Caller, name: str) -> list[TrialView]:
    """In the order of the decisions."""
    app = apps.find(tx, caller.project_id, name)
    names = _names(tx, app)
    found = []
    for trial in app_trials.trials(tx, app.id):
        reasons = reasons_of(trial.decision, names)
        found.append(
            TrialView(
                trial,
                candidate_name(trial),
                _state(trial),
                reasons.sentence(),
                reasons.mean,
                reasons.deviation,
                reasons.cost,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """A trial that was better than all before."""

    at: datetime
    quality: float
    candidate: str
    model: str


def progress(tx: Tx, caller: Caller, name: str) -> list[Step]:
    """The best score over time."""
    app = apps.find(tx, caller.project_id, name)
    found: list[Step] = []
    done = [t for t in app_trials.trials(tx, app.id) if t.quality is not None and t.model_set is not None]
    for trial in sorted(done, key=lambda t: t.ended_at or t.started_at):
        if not found or (trial.quality or 0.0) > found[-1].quality:
            found.append(
                Step(
                    trial.ended_at or trial.started_at,
                    trial.quality or 0.0,
                    candidate_name(trial),
                    trial.model_set or "",
                )
            )
    return found

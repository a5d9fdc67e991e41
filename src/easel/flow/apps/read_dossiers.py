"""Reading apps as the scheduler needs them from their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from easel.declare.resources import Resources
from easel.flow.apps.dossier import Dossier, Result
from easel.flow.apps.ready import candidates_of, lacking, metric_of
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.slices import can_stop
from easel.records.app import App, AppTrial, EndedTrial, ExampleCounts
from easel.records.decision import trial_of_json
from easel.records.job import JobOutcome
from easel.records.tenant import Terms
from easel.store import app_examples, app_trials, apps, job_outcomes, tenants
from easel.store.engine import Tx
from easel.tenancy.source import Flight

_USUAL = Resources(1.0, 2048)
"""What a trial is taken to hold whose job is not there any more."""


def read_dossiers(tx: Tx) -> list[Dossier]:
    """Returns every app that was fed something, read in a few queries for all of them."""
    counts = app_examples.counts_of_all(tx)
    terms = tenants.all_terms(tx)
    ended: dict[str, list[EndedTrial]] = {}
    for done in app_trials.ended(tx):
        ended.setdefault(done.app_id, []).append(done)
    running: dict[str, list[AppTrial]] = {}
    for trial in app_trials.trials(tx, running=True):
        running.setdefault(trial.app_id, []).append(trial)
    asked = job_outcomes.outcomes(tx, [one.job_id for some in running.values() for one in some])
    found = (
        make_dossier(
            app,
            counts.get(app.id, ExampleCounts({}, 0)),
            terms.get(app.id, Terms()),
            ended.get(app.id, ()),
            running.get(app.id, ()),
            asked,
        )
        for app in apps.all_apps(tx)
    )
    return [one for one in found if one is not None]


def read_dossier(tx: Tx, app_id: AppId) -> Dossier | None:
    """Returns one app; None where there is none, or it was fed nothing yet."""
    app = apps.maybe(tx, app_id)
    if app is None:
        return None
    counts = app_examples.counts(tx, [app_id])[app_id]
    running = app_trials.trials(tx, app_id, running=True)
    asked = job_outcomes.outcomes(tx, [one.job_id for one in running])
    return make_dossier(app, counts, tenants.terms(tx, app_id), app_trials.ended(tx, app_id), running, asked)


def make_dossier(
    app: App,
    counts: ExampleCounts,
    terms: Terms,
    ended: Sequence[EndedTrial],
    running: Sequence[AppTrial],
    asked: Mapping[JobId, JobOutcome],
) -> Dossier | None:
    """Returns what is known of an app; None before it was fed anything."""
    if app.summary is None:
        return None
    results = tuple(
        Result(
            trial.job_id,
            trial.name,
            trial.quality,
            trial.score,
            trial.examples,
            trial.spent_micros,
            trial.model_set,
            trial.share,
            trial.seconds / trial.scale,
            trial.luck,
        )
        for trial in ended
    )
    flights = tuple(
        Flight(
            one.job_id,
            trial_of_json(one.decision, app.id, -1),
            asked[one.job_id].resources if one.job_id in asked else _USUAL,
            (app.project_id, asked[one.job_id].user_id if one.job_id in asked else app.user_id),
            one.examples,
            can_stop(Candidate.from_json(dict(one.candidate))),
        )
        for one in running
    )
    changed_at = ended[-1].ended_at if ended else app.created_at
    return Dossier(
        app,
        terms,
        metric_of(app),
        candidates_of(app),
        counts.total_on,
        results,
        flights,
        tuple(one.examples for one in running),
        changed_at,
        lacking(app, counts),
        counts.off,
    )


def placed_flights(one: Dossier) -> tuple[Flight, ...]:
    """Returns the app's flights with the places that their candidates have now."""
    place = {candidate.name: k for k, candidate in enumerate(one.candidates)}
    return tuple(
        replace(f, trial=replace(f.trial, tenant=one.id, index=place.get(f.trial.candidate, -1)))
        for f in one.flights
    )

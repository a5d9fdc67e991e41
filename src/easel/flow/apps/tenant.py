"""Apps as tenants of the pool: what they offer, how a trial of one starts, what comes of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from easel.declare.resources import Resources
from easel.errors import Denied, EaselError
from easel.flow.apps.beliefs import Costs, Learn
from easel.flow.apps.curve_book import CurveBook
from easel.flow.apps.dossier import Dossier, Result, ShareKey, is_willing, merged_terms, tenant_of, willing
from easel.flow.apps.ensemble import combine_if_due
from easel.flow.apps.learned_book import LearnedBook
from easel.flow.apps.ready import candidates_of, lacking, metric_of, owner_of
from easel.flow.apps.trial_job import earlier_slice, learn_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.prices import book_now, draw_bill, price_history
from easel.flow.words.reasons import plain
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.slices import goes_on
from easel.records.app import App, AppTrial, ExampleCounts
from easel.records.attempt import EndReason
from easel.records.decision import StartTrial, decision_json, trial_of_json
from easel.records.event import Event
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.records.queue import Owner
from easel.records.standing import Obstacle, Standing
from easel.records.tenant import PoolTurn, Terms
from easel.store import app_examples, app_trials, apps, devices, jobs, tenants, trial_history
from easel.store.engine import AnyRow, NewEvent, Store, Tx
from easel.tenancy.places import GPU, gpu_kind
from easel.tenancy.source import Change, Flight, StartGrant, TenantGone, TenantOffer, TrialEnded

log = logging.getLogger("easel.learning")
_TOUCHING = frozenset(
    {
        "app.declared",
        "app.fed",
        "app.refined",
        "app.changed",
        "app.vectors",
        "app.deleted",
        "app.set",
        "app.trial",
        "app.trial_ended",
        "app.shared",
    }
)
_FAULTS = frozenset(
    reason.value
    for reason in (
        EndReason.FILES,
        EndReason.PROCESS_DIED,
        EndReason.WORKER_DIED,
        EndReason.DEVICE_LOST,
        EndReason.UNKNOWN_THERE,
    )
)
MOST_FAULTS = 2
"""So often a candidate is tried again after the platform lost a slice of it."""
GROWTH = 1.5
"""Beliefs are learned anew when there are so many times the past trials they were learned from."""


@dataclass(frozen=True)
class JobOutcome:
    """What the job of a trial came to, for each of the apps that share it."""

    job_id: JobId
    apps: tuple[AppId, ...]
    result: Result


@dataclass(frozen=True)
class AppSettlement:
    """`last` is at most the number of the newest past trial: numbers may be left out, never given twice."""

    outcomes: tuple[JobOutcome, ...]
    last: int


class AppSource:
    """Every app that can learn, in memory as its records say; apps that learn the same thing are one tenant."""

    def __init__(self, store: Store, learn: Learn = LearnedBook) -> None:
        self._store, self._learn = store, learn
        self._apps: dict[AppId, Dossier] = {}
        self._groups: dict[ShareKey | AppId, tuple[AppId, ...]] = {}
        self._to_share: set[ShareKey | AppId] = set()
        self._as_of = self._last = 0
        self._costs = Costs(())
        self._curves = CurveBook((), learn(()), self._costs)
        self._callers: dict[Owner, Caller] = {}
        self._now = 0.0

    # What they offer. -------------------------------------------------------------------------------------

    def load(self, tx: Tx, turn: PoolTurn) -> list[TenantOffer]:
        self._now = tx.now.timestamp()
        self._callers.clear()
        self._book, self._prices = book_now(tx), price_history(tx)
        self._last = trial_history.last(tx)
        self._study_history(tx, turn.as_of)
        everything = apps.all_apps(tx)
        counts = app_examples.counts_of_all(tx)
        terms = tenants.all_terms(tx)
        ended: dict[str, list[AnyRow]] = {}
        for row in app_trials.brief(tx):
            ended.setdefault(row.app_id, []).append(row)
        running: dict[str, list[AppTrial]] = {}
        for trial in app_trials.trials(tx, running=True):
            running.setdefault(trial.app_id, []).append(trial)
        asked = jobs.outcomes(tx, [one.job_id for some in running.values() for one in some])
        found = (
            _dossier(
                app,
                counts.get(app.id, ExampleCounts({}, 0)),
                terms.get(app.id, Terms()),
                ended.get(app.id, ()),
                running.get(app.id, ()),
                asked,
            )
            for app in everything
        )
        self._apps = {one.id: one for one in found if one is not None}
        self._groups = {}
        for one in self._apps.values():
            self._groups[one.key] = (*self._groups.get(one.key, ()), one.id)
        self._groups = {key: tuple(sorted(members)) for key, members in self._groups.items()}
        self._to_share = {key for key, members in self._groups.items() if len(members) > 1}
        return [self._offer(key) for key in self._groups]

    def touched(self, event: Event) -> str | None:
        if event.kind.startswith(("member.", "user.", "project.")):
            self._callers.clear()
        if event.kind not in _TOUCHING:
            return None
        known, job = self._apps.get(AppId(event.subject)), event.body.get("job")
        flights, results = (known.flights, known.results) if known is not None else ((), ())
        started_here = event.kind == "app.trial" and any(f.job_id == job for f in flights)
        settled_here = event.kind == "app.trial_ended" and any(r.job_id == job for r in reversed(results))
        return None if started_here or settled_here else event.subject

    def read(self, tx: Tx, name: str) -> list[Change]:
        self._now = tx.now.timestamp()
        app_id = AppId(name)
        before = self._apps.pop(app_id, None)
        after = self._dossier_of(tx, app_id)
        affected: list[ShareKey | AppId] = []
        gone: list[Change] = []
        if before is not None:
            lead, rest = self._groups[before.key][0], _less(self._groups[before.key], app_id)
            affected.append(before.key)
            if after is None or after.key != before.key:
                self._groups[before.key] = rest
                if lead == app_id:
                    gone.append(TenantGone(app_id))
        if after is not None:
            self._apps[app_id] = after
            members = self._groups.get(after.key, ())
            if app_id not in members:
                grown = tuple(sorted((*members, app_id)))
                if members and grown[0] != members[0]:
                    gone.append(TenantGone(members[0]))
                self._groups[after.key] = grown
                if len(grown) > 1:
                    self._to_share.add(after.key)
            affected.append(after.key)
        for key in affected:
            if not self._groups.get(key):
                self._groups.pop(key, None)
        offers = [self._offer(key) for key in dict.fromkeys(affected) if key in self._groups]
        return [*gone, *offers]

    def _dossier_of(self, tx: Tx, app_id: AppId) -> Dossier | None:
        app = apps.maybe(tx, app_id)
        if app is None:
            return None
        counts = app_examples.counts(tx, [app_id])[app_id]
        running = app_trials.trials(tx, app_id, running=True)
        asked = jobs.outcomes(tx, [one.job_id for one in running])
        terms = tenants.terms(tx, app_id)
        return _dossier(app, counts, terms, app_trials.brief(tx, app_id), running, asked)

    def _offer(self, key: ShareKey | AppId) -> TenantOffer:
        """The first of a group stands for all of it: its trials are everybody's."""
        members = [self._apps[app_id] for app_id in self._groups[key]]
        lead = members[0]
        lead = replace(lead, flights=_places(lead))
        members = [lead, *members[1:]]
        tenant = tenant_of(members, self._curves, self._costs, self._book, self._now)
        obstacle, until = _own_obstacle(lead, self._now)
        deadlines = [one.terms.deadline.timestamp() for one in members if one.terms.deadline is not None]
        to_come = [d for d in [*deadlines, *([until] if until is not None else [])] if d > self._now]
        return TenantOffer(
            tenant,
            {one.id: _owner(one.app) for one in members},
            merged_terms(members, self._now),
            best=lead.best,
            flights=lead.flights,
            obstacle=obstacle,
            until=min(to_come, default=None),
            changed_at=lead.changed_at,
        )

    def prepare(self) -> list[Change]:
        """Apps that turn out to learn the same thing get each other's trials, for nothing."""
        changes: list[Change] = []
        while self._to_share:
            key = self._to_share.pop()
            members = [self._apps[app_id] for app_id in self._groups.get(key, ())]
            if len(members) > 1 and _differ(members):
                with self._store.write() as tx:
                    if _share(tx, members):
                        for one in members:
                            tx.emit("app.shared", one.id, project_id=one.app.project_id, body={})
                with self._store.read() as tx:
                    for one in members:
                        changes += self.read(tx, one.id)
                self._to_share.discard(key)
        return changes

    # What was learned. ------------------------------------------------------------------------------------

    def learnable(self) -> int | None:
        return self._last if self._last >= max(GROWTH * self._as_of, self._as_of + 2) else None

    def relearn(self, as_of: int) -> list[TenantOffer]:
        with self._store.read() as tx:
            self._study_history(tx, as_of)
        return [self._offer(key) for key in self._groups]

    def _study_history(self, tx: Tx, as_of: int) -> None:
        past = trial_history.until(tx, as_of)
        self._costs, self._as_of = Costs(past), as_of
        self._curves = CurveBook(past, self._learn(past), self._costs)

    # Start this. ------------------------------------------------------------------------------------------

    def start(self, tx: Tx, trial: StartTrial, grant: StartGrant) -> Flight:
        lead = self._apps[AppId(trial.tenant)]
        served = self._served(lead, grant)
        first = served[0].app
        owner = self._caller(tx, first)
        candidate = lead.candidates[trial.index]
        begun = lead.begun(candidate.name) if goes_on(candidate) else None
        earlier = None if begun is None else earlier_slice(tx, begun.job_id, begun.model_set)
        examples = lead.counted if begun is None or earlier is None else begun.examples
        until = None if trial.slice is None else trial.slice.share
        spec = learn_spec(tx, first, candidate, grant.resources, grant.limit_s, until, earlier)
        job = submit_job(tx, owner, replace(spec, wants=grant.wants))
        name, kept = candidate.name, decision_json(trial)
        scale = self._scale(candidate, grant.kind) if trial.slice is None else trial.slice.scale
        app_trials.add(
            tx, [one.id for one in served], job.id, name, candidate.to_json(), kept, examples, scale
        )
        why = plain(trial.reasons, name, lead.metric, best=lead.best)
        body = {"candidate": name, "job": job.id, "why": why, "turn": grant.turn}
        for one in served:
            tx.emit("app.trial", one.id, project_id=one.app.project_id, actor=one.app.user_id, body=body)
        return Flight(job.id, trial, grant.resources, _owner(first), examples, goes_on(candidate))

    def _scale(self, candidate: Candidate, kind: str) -> float:
        """Seconds of a whole trial on such a device for a second on the reference device."""
        if not kind.startswith(GPU):
            return 1.0
        there, here = self._costs.seconds_on(kind, [candidate]), self._costs.seconds([candidate])
        return float(there[0] / here[0])

    def _caller(self, tx: Tx, app: App) -> Caller:
        """Returns in whose name the app's trials run, remembered until somebody's rights change."""
        key = _owner(app)
        if key not in self._callers:
            found = owner_of(tx, app)
            if found is None:
                raise Denied("its owner may no longer run anything in this project")
            self._callers[key] = found
        return self._callers[key]

    def _served(self, lead: Dossier, grant: StartGrant) -> list[Dossier]:
        """Returns which apps that learn the same have this trial: their terms and their owners' rights allow it."""
        members = [self._apps[app_id] for app_id in self._groups[lead.key] if app_id in grant.members]
        return willing(members or [lead], self._now)

    def started(self, flight: Flight, grant: StartGrant) -> None:
        lead = self._apps[AppId(flight.trial.tenant)]
        members = self._groups[lead.key]
        for one in self._served(lead, grant):
            self._apps[one.id] = replace(
                one, flights=(*one.flights, flight), running=(*one.running, flight.examples)
            )
        for app_id in members:
            one = self._apps[app_id]
            self._apps[app_id] = replace(one, terms=replace(one.terms, served_at=grant.turn))
        if len(members) > 1:
            self._to_share.add(lead.key)

    # This ended. ------------------------------------------------------------------------------------------

    def settle(self, tx: Tx, over: Sequence[JobId]) -> AppSettlement:
        trials: dict[JobId, list[AppTrial]] = {}
        for trial in app_trials.running_of(tx, over):
            trials.setdefault(trial.job_id, []).append(trial)
        rows = jobs.outcomes(tx, list(trials))
        found = [self._settle(tx, some, rows.get(job_id)) for job_id, some in trials.items()]
        kinds = {one.name: gpu_kind(one) for one in devices.machines(tx)}
        trial_history.add(
            tx, [self._past(trials[one.job_id][0], one, rows.get(one.job_id), kinds) for one in found]
        )
        return AppSettlement(tuple(found), self._last + len(found))

    def _settle(self, tx: Tx, some: Sequence[AppTrial], row: AnyRow | None) -> JobOutcome:
        trial = some[0]
        quality, seconds = _quality(row), _seconds(row)
        model = row.output_set if row is not None and quality is not None else None
        bill = 0
        if row is not None and row.started_at and row.ended_at:
            bill = draw_bill(row.spec, row.started_at, row.ended_at, self._prices).micros
        bill //= len(some)
        known = self._apps.get(trial.app_id)
        faults = 0 if known is None else known.faults(trial.name)
        share = 0.0 if _is_fault(row) and faults < MOST_FAULTS else _share_reached(row, trial)
        told = {} if row is None or quality is None else row.result
        measured = {name: told.get(name) for name in ("error", "baseline", "luck")}
        app_trials.end(tx, trial.job_id, quality, seconds, model, bill, share, **measured)
        score = float(dict(trial.decision)["reasons"]["acquisition"])
        took = seconds / trial.scale
        result = Result(trial.job_id, trial.name, quality, score, trial.examples, bill, model, share, took)
        tx.emit_all(
            [event for one in some for event in self._told(tx, one.app_id, result, told.get("check"))]
        )
        for one in some:
            sibling = self._apps.get(one.app_id)
            _combine(tx, apps.maybe(tx, one.app_id) if sibling is None else sibling.app)
        return JobOutcome(trial.job_id, tuple(one.app_id for one in some), result)

    def _told(self, tx: Tx, app_id: AppId, result: Result, check: Any = None) -> list[NewEvent]:
        """Announces that a trial of the app ended, and that the app is the better for it where it is."""
        known = self._apps.get(app_id)
        app = apps.maybe(tx, app_id) if known is None else known.app
        if app is None:
            return []
        told: dict[str, Any] = {
            "job": result.job_id,
            "candidate": result.candidate,
            "quality": result.quality,
        }
        events = [NewEvent("app.trial_ended", app.id, app.project_id, app.user_id, told)]
        before = None if known is None else known.best
        counts = known is None or known.counts(result.examples)
        better = result.quality is not None and (before is None or result.quality > before)
        if better and counts:
            body = {
                "candidate": result.candidate,
                "quality": result.quality,
                "model": result.model_set,
                "before": before,
                "check": check,
            }
            events.append(NewEvent("app.improved", app.id, app.project_id, app.user_id, body))
        return events

    def _past(
        self, trial: AppTrial, outcome: JobOutcome, row: AnyRow | None, kinds: Mapping[str, str]
    ) -> dict[str, Any]:
        known = self._apps.get(trial.app_id)
        candidate = Candidate.from_json(dict(trial.candidate))
        usage = None if row is None or not row.usage else row.usage.get("peak_memory_mb")
        told = {} if row is None or not row.result else row.result
        on_gpu = row is not None and _asked(row.spec).gpus > 0
        kind = (kinds.get(trial.decision["device"]) or GPU) if on_gpu else ""
        return {
            "app_id": trial.app_id,
            # Costs name classes, which belong to the app's own data.
            "metric": "" if known is None else known.metric.partition("(")[0],
            "candidate": candidate.name,
            "family": candidate.family,
            "promise": candidate.promise,
            "guess_s": candidate.cost_s,
            "quality": outcome.result.quality,
            "seconds": outcome.result.seconds,
            "peak_mb": usage,
            "examples": trial.examples,
            "share": outcome.result.share,
            "kind": kind,
            "kind_s": _seconds(row) if kind else None,
            "halved": int(told.get("halved") or 0),
        }

    def settled(self, settlement: AppSettlement) -> list[Change]:
        self._last = settlement.last
        simple: list[tuple[ShareKey | AppId, TrialEnded]] = []
        again: dict[ShareKey | AppId, None] = {}
        for outcome in settlement.outcomes:
            for app_id in outcome.apps:
                known = self._apps.get(app_id)
                ended = None if known is None else self._end(known, outcome.result)
                if known is not None and ended is not None:
                    simple.append((known.key, ended))
                elif known is not None:
                    again[known.key] = None
        kept = [ended for key, ended in simple if key not in again]
        return [*kept, *(self._offer(key) for key in again if key in self._groups)]

    def _end(self, one: Dossier, result: Result) -> TrialEnded | None:
        """The app with the result; what that means for its tenant, where it changes nothing but this trial."""
        flights = [(f, n) for f, n in zip(one.flights, one.running, strict=True) if f.job_id != result.job_id]
        mine = next((f for f in _places(one) if f.job_id == result.job_id), None)
        after = self._apps[one.id] = replace(
            one,
            results=(*one.results, result),
            flights=tuple(f for f, _ in flights),
            running=tuple(n for _, n in flights),
        )
        alone = len(self._groups[one.key]) == 1
        if mine is None or not alone or after.rescored or not after.counts(result.examples):
            return None
        score, bill = after.score_of(result.quality), result.bill_micros / 1e6
        return TrialEnded(result.job_id, mine.trial, score, bill, after.best, result.share, result.seconds)


def _combine(tx: Tx, app: App | None) -> None:
    """Submit one more trial that combines what was found, where it is due."""
    if app is None:
        return
    try:
        combine_if_due(tx, app)
    except EaselError as error:
        # A full quota or a spent budget is its owner's matter: it is due again when the next trial ends.
        log.info("no ensemble for app %s: %s", app.id, error)


def _less(members: tuple[AppId, ...], app_id: AppId) -> tuple[AppId, ...]:
    return tuple(one for one in members if one != app_id)


def _dossier(
    app: App,
    counts: ExampleCounts,
    terms: Terms,
    ended: Sequence[AnyRow],
    running: Sequence[AppTrial],
    asked: Mapping[JobId, AnyRow],
) -> Dossier | None:
    """Returns what is known of an app; None before it was fed anything."""
    if app.summary is None:
        return None
    results = tuple(
        Result(
            row.job_id,
            row.name,
            row.quality,
            row.score or 0.0,
            row.examples,
            row.spent_micros or 0,
            row.model_set,
            row.share,
            (row.seconds or 0.0) / row.scale,
        )
        for row in ended
    )
    flights = tuple(
        Flight(
            one.job_id,
            trial_of_json(one.decision, app.id, -1),
            _asked(asked[one.job_id].spec) if one.job_id in asked else _USUAL,
            (app.project_id, asked[one.job_id].user_id if one.job_id in asked else app.user_id),
            one.examples,
            goes_on(Candidate.from_json(dict(one.candidate))),
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
    )


_USUAL = Resources(1.0, 2048)


def _places(one: Dossier) -> tuple[Flight, ...]:
    """Returns the app's flights with the places that their candidates have now."""
    place = {candidate.name: k for k, candidate in enumerate(one.candidates)}
    return tuple(
        replace(f, trial=replace(f.trial, tenant=one.id, index=place.get(f.trial.candidate, -1)))
        for f in one.flights
    )


def _owner(app: App) -> Owner:
    return app.project_id, app.user_id


def _asked(spec: Any) -> Resources:
    asked = spec["resources"]
    return Resources(float(asked["vcpu"]), int(asked["memory_mb"]), float(asked.get("gpus", 0.0)))


def _own_obstacle(one: Dossier, now: float) -> tuple[Obstacle | None, float | None]:
    """What is missing, and when it ceases to matter: nothing is learned from a part of a feed for a while."""
    if one.lacks is not None:
        return Obstacle(Standing.LACKS_EXAMPLES, facts={"lacks": one.lacks}), None
    more_until = one.app.more_until
    if more_until is None or more_until.timestamp() <= now:
        return None, None
    return Obstacle(Standing.WAITS_FOR_FEED), more_until.timestamp()


def _quality(row: AnyRow | None) -> float | None:
    if row is None or row.state != JobState.FINISHED.value or not row.result:
        return None
    quality = row.result.get("quality")
    return float(quality) if quality is not None and math.isfinite(float(quality)) else None


def _is_fault(row: AnyRow | None) -> bool:
    """Whether the platform lost the slice or had no room for its files: that says nothing of the candidate."""
    return row is not None and row.state == JobState.FAILED.value and row.end_reason in _FAULTS


def _share_reached(row: AnyRow | None, trial: AppTrial) -> float:
    """How far the trial is; one that does not say, as far as it was meant to come."""
    if row is not None and row.result and row.result.get("reached") is not None:
        return min(max(float(row.result["reached"]), 0.0), 1.0)
    part = trial.decision.get("slice")
    return float(part["share"]) if part else 1.0


def _seconds(row: AnyRow | None) -> float:
    if row is None or not row.ended_at or not row.started_at:
        return 0.0
    return float((row.ended_at - row.started_at).total_seconds())


def _differ(members: Sequence[Dossier]) -> bool:
    """Whether some have trials that count and others lack."""
    jobs_of = [{r.job_id for r in one.valid} | {f.job_id for f in one.flights} for one in members]
    return any(some != jobs_of[0] for some in jobs_of)


def _share(tx: Tx, members: Sequence[Dossier]) -> bool:
    """Copy to each what others have; whether anything was."""
    added = 0
    everything = {r.job_id for one in members for r in one.valid} | {
        f.job_id for one in members for f in one.flights
    }
    for one in members:
        own = {r.job_id for r in one.results} | {f.job_id for f in one.flights}
        missing = sorted(everything - own)
        if missing and (is_willing(one, tx.now.timestamp())):
            added += app_trials.copy(tx, missing, one.id)
    return added > 0

"""Apps as tenants of the pool: what they offer, how a trial of one starts, what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from easel.errors import Denied
from easel.flow.apps.beliefs import Costs, Learn
from easel.flow.apps.curve_book import CurveBook
from easel.flow.apps.dossier import Dossier, Result, ShareKey, merged_terms, tenant_of, willing
from easel.flow.apps.learned_book import LearnedBook
from easel.flow.apps.read_dossiers import placed_flights, read_dossier, read_dossiers
from easel.flow.apps.ready import callers_of_members, owner_of
from easel.flow.apps.settle_trials import TrialOutcome, TrialSettler
from easel.flow.apps.share_trials import differ, share_trials
from easel.flow.apps.trial_job import earlier_slice, learn_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.prices import book_now, price_history
from easel.flow.words.reasons import pack_others, plain
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.slices import can_stop, goes_on
from easel.records.app import App
from easel.records.decision import StartTrial, decision_json
from easel.records.event import Event
from easel.records.identity import Caller
from easel.records.queue import Owner
from easel.records.standing import Obstacle, Standing
from easel.records.tenant import PoolTurn
from easel.store import app_trials, trial_history
from easel.store.engine import Store, Tx
from easel.tenancy.places import GPU
from easel.tenancy.source import Change, Flight, StartGrant, TenantGone, TenantOffer, TrialEnded

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
GROWTH = 1.5
"""Beliefs are learned anew when there are so many times the past trials they were learned from."""


@dataclass(frozen=True)
class AppSettlement:
    """`last` is at most the number of the newest past trial: numbers may be left out, never given twice."""

    outcomes: tuple[TrialOutcome, ...]
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
        self._callers = callers_of_members(tx)
        self._book, self._prices = book_now(tx), price_history(tx)
        self._last = trial_history.last(tx)
        self._study_history(tx, turn.as_of)
        self._apps = {one.id: one for one in read_dossiers(tx)}
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
        after = read_dossier(tx, app_id)
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

    def _offer(self, key: ShareKey | AppId) -> TenantOffer:
        """The first of a group stands for all of it: its trials are everybody's."""
        members = [self._apps[app_id] for app_id in self._groups[key]]
        lead = members[0]
        lead = replace(lead, flights=placed_flights(lead))
        members = [lead, *members[1:]]
        tenant = tenant_of(members, self._curves, self._costs, self._book, self._now)
        obstacle, until = _own_obstacle(lead, self._now)
        deadlines = [one.terms.deadline.timestamp() for one in members if one.terms.deadline is not None]
        to_come = [d for d in [*deadlines, *([until] if until is not None else [])] if d > self._now]
        return TenantOffer(
            tenant,
            {one.id: _owner(one.app) for one in members},
            merged_terms(members, self._now),
            best=lead.shown,
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
            if len(members) > 1 and differ(members):
                with self._store.write() as tx:
                    if share_trials(tx, members):
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
        switched = served[0].counted, served[0].off
        need = grant.resources
        limit, pack = grant.limit_s, trial.pack
        spec = learn_spec(tx, first, candidate, need, limit, until, earlier, switched=switched, pack=pack)
        job = submit_job(tx, owner, replace(spec, wants=grant.wants), pool=grant.pool)
        name, kept = candidate.name, decision_json(trial)
        scale = self._scale(candidate, grant.kind) if trial.slice is None else trial.slice.scale
        app_trials.add(
            tx, [one.id for one in served], job.id, name, candidate.to_json(), kept, examples, scale
        )
        beside = pack_others(kept)
        why = plain(trial.reasons, name, lead.metric, best=lead.shown, until=until, beside=beside)
        body = {"candidate": name, "job": job.id, "why": why, "turn": grant.turn}
        for one in served:
            tx.emit("app.trial", one.id, project_id=one.app.project_id, actor=one.app.user_id, body=body)
        return Flight(job.id, trial, grant.resources, _owner(first), examples, can_stop(candidate))

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
            self._apps[app_id] = replace(one, terms=replace(one.terms, served_at=grant.turn, asked=False))
        if len(members) > 1:
            self._to_share.add(lead.key)

    # This ended. ------------------------------------------------------------------------------------------

    def settle(self, tx: Tx, over: Sequence[JobId]) -> AppSettlement:
        found = TrialSettler(self._apps, self._prices).settle(tx, over)
        return AppSettlement(tuple(found), self._last + len(found))

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
        mine = next((f for f in placed_flights(one) if f.job_id == result.job_id), None)
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
        return TrialEnded(result.job_id, mine.trial, score, bill, after.shown, result.share, result.seconds)


def _less(members: tuple[AppId, ...], app_id: AppId) -> tuple[AppId, ...]:
    return tuple(one for one in members if one != app_id)


def _owner(app: App) -> Owner:
    return app.project_id, app.user_id


def _own_obstacle(one: Dossier, now: float) -> tuple[Obstacle | None, float | None]:
    """What is missing, and when it ceases to matter: nothing is learned from a part of a feed for a while."""
    if one.lacks is not None:
        return Obstacle(Standing.LACKS_EXAMPLES, facts={"lacks": one.lacks}), None
    more_until = one.app.more_until
    if more_until is None or more_until.timestamp() <= now:
        return None, None
    return Obstacle(Standing.WAITS_FOR_FEED), more_until.timestamp()

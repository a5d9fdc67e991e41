"""The state of the pool, kept by a controller: rebuilt from records once, then moved from event to event.

A decision is made outside any transaction, on values; a short transaction then starts the trial, if nobody else has
started one since. Whoever follows the same events without writing (`follow` alone) sees the same state.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from easel.declare.resources import Resources, Room
from easel.errors import EaselError
from easel.ids import JobId
from easel.records.decision import Decision, LeaveIdle, StartTrial
from easel.records.device import Device
from easel.records.event import Event
from easel.records.job import TERMINAL, JobState
from easel.records.queue import Owner
from easel.records.standing import DONE, Obstacle, Standing
from easel.records.tenant import PoolTurn
from easel.schedule.policies import Policy
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.store import devices, jobs, tenants
from easel.store.engine import Store, Tx
from easel.store.events import events_after, last_seq
from easel.tenancy import places
from easel.tenancy.newcomers import who_gives_way
from easel.tenancy.outlook import outlook
from easel.tenancy.source import Change, Flight, StartGrant, TenantGone, TenantOffer, TenantSource, TrialEnded

log = logging.getLogger("easel.tenancy")

_ENDS = frozenset({"job.finished", "job.failed", "job.killed"})
_STARTS = frozenset({"app.trial", "study.point_started"})
_ADMISSION = ("queue.", "budget.", "member.", "user.", "project.", "grant.", "prices.")
_AT_ONCE = 2000
REFERENCE = PoolDevice("reference")


class Admission(Protocol):
    """Whose jobs could not start now, whatever the pool has room for."""

    def obstacles(self, tx: Tx, owners: Collection[Owner]) -> Mapping[Owner, Obstacle]: ...


@dataclass(frozen=True)
class Rules:
    """`done_below`: a tenant that may gain less than this in the next hour stops. A trial may run `patience` times as
    long as predicted, and at least `least_limit_s`. A refused tenant is asked again after `retry_s`; who may start is
    looked up every `admission_s`."""

    done_below: float = 0.0005
    patience: float = 4.0
    least_limit_s: float = 60.0
    retry_s: float = 5.0
    admission_s: float = 1.0


@dataclass
class _Refusal:
    obstacle: Obstacle
    until: float


@dataclass
class Keeper:
    """`guard` refuses, inside a transaction, a controller that was thought dead."""

    store: Store
    sources: Sequence[TenantSource[Any]]
    admission: Admission
    policy: Policy
    rules: Rules = field(default_factory=Rules)
    guard: Callable[[Tx], None] | None = None
    tell_done: Callable[[Tx, Collection[str], Obstacle], None] | None = None
    """Told, once, of the members of a tenant of which nothing more will start by itself."""

    state: PoolState = field(init=False)
    offers: dict[str, TenantOffer] = field(init=False, default_factory=dict)
    obstacles: dict[str, Obstacle] = field(init=False, default_factory=dict)
    """Why nothing of a tenant starts, for those of which nothing may."""
    flights: dict[JobId, Flight] = field(init=False, default_factory=dict)
    seen: PoolTurn = field(init=False, default=PoolTurn())

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forgets everything: the next look reads the records."""
        self.state = PoolState({}, REFERENCE)
        self._seq: int | None = None
        self.offers, self.obstacles, self.flights = {}, {}, {}
        self._of: dict[str, TenantSource[Any]] = {}
        self._over: set[JobId] = set()
        self._refused: dict[str, _Refusal] = {}
        self._blocked: Mapping[Owner, Obstacle] = {}
        self._blocked_at = -math.inf
        self._owners: set[Owner] = set()
        self._joined: set[str] = set()
        self._largest = Resources(0.5, 16)
        self._stale = False
        self._wants: dict[str, Mapping[str, str]] = {}
        self._done: set[str] = set()
        self.now = 0.0

    # What happened. ---------------------------------------------------------------------------------------

    def follow(self, tx: Tx) -> None:
        """Take in what others did since the last look; everything at the first."""
        self.now = tx.now.timestamp()
        if self._seq is None:
            self._rebuild(tx)
        else:
            self._absorb(tx)
        if self.now - self._blocked_at >= self.rules.admission_s:
            self._look_at_admission(tx)
        self._lapse(tx)

    def _rebuild(self, tx: Tx) -> None:
        self._seq, self.seen = last_seq(tx), tenants.turn(tx)
        found: list[Change] = []
        for source in self.sources:
            offered = source.load(tx, self.seen)
            self._of |= dict.fromkeys([one.tenant.name for one in offered], source)
            found += offered
        self.state = PoolState({}, REFERENCE, step=self.seen.turn)
        self._apply(found)
        self._look_at_admission(tx)
        running = jobs.states(tx, list(self.flights))
        self._over = {job for job in self.flights if running.get(job) is None or running[job][0] in TERMINAL}

    def _absorb(self, tx: Tx) -> None:
        assert self._seq is not None
        touched: dict[str, TenantSource[Any]] = {}
        more = True
        while more and (found := events_after(tx, None, self._seq, _AT_ONCE)):
            self._seq = found[-1].seq
            more = len(found) == _AT_ONCE
            for event in found:
                self._take(event, touched)
        if self._stale:
            self.forget()
            self.now = tx.now.timestamp()
            self._rebuild(tx)
            return
        changes: list[Change] = []
        for name, source in touched.items():
            read = source.read(tx, name)
            self._of |= {one.tenant.name: source for one in read if isinstance(one, TenantOffer)}
            changes += read
        self._apply(changes)

    def _take(self, event: Event, touched: dict[str, TenantSource[Any]]) -> None:
        if event.kind in _ENDS:
            if event.subject in self.flights:
                self._over.add(JobId(event.subject))
            return
        turn = int(event.body.get("turn", 0)) if event.kind in _STARTS else 0
        if turn > self.state.step:
            self.state = replace(self.state, step=turn)
            self.seen = replace(self.seen, turn=turn)
        if event.kind == "pool.learned":
            self._learn_from(int(event.body["as_of"]))
            return
        if event.kind == "prices.changed":
            self._stale = True
        if event.kind.startswith(_ADMISSION):
            self._blocked_at = -math.inf
        for source in self.sources:
            name = source.touched(event)
            if name is not None:
                touched[name] = source
                self._refused.pop(name, None)

    def _apply(self, changes: Iterable[Change]) -> None:
        """Arrivals are put in their place all at once: the order of tenants is that of their names."""
        arrived: dict[str, Tenant] = {}
        left: set[str] = set()
        for change in changes:
            match change:
                case TenantGone(name):
                    self._forget_tenant(name)
                    arrived.pop(name, None)
                    left.add(name)
                case TenantOffer():
                    name = change.tenant.name
                    left.discard(name)
                    self._keep(change)
                    tenant = self._judged(change, change.tenant)
                    if name in self.state.tenants:
                        self.state = self.state.renewed(tenant)
                    else:
                        arrived[name] = tenant
                case TrialEnded():
                    self._finish(change)
        rest = left & set(self.state.tenants)
        if arrived or rest:
            stay = {k: t for k, t in self.state.tenants.items() if k not in rest}
            everybody = {**stay, **{name: self._joining(one) for name, one in arrived.items()}}
            self.state = replace(self.state, tenants=dict(sorted(everybody.items())), memory=())

    def _keep(self, offer: TenantOffer) -> None:
        name = offer.tenant.name
        before = self.offers.get(name)
        for flight in () if before is None else before.flights:
            self.flights.pop(flight.job_id, None)
        self.offers[name] = offer
        if not self._owners.issuperset(offer.owners.values()):
            self._owners.update(offer.owners.values())
            self._blocked_at = -math.inf
        self.flights |= {flight.job_id: flight for flight in offer.flights}
        for need in set(offer.tenant.needs):
            self._largest = Resources(
                max(self._largest.vcpu, need.vcpu),
                max(self._largest.memory_mb, need.memory_mb),
                max(self._largest.gpus, need.gpus),
            )

    def _joining(self, tenant: Tenant) -> Tenant:
        """A tenant whose turn is recorded waits since then; another one from now on."""
        recorded = self.offers[tenant.name].terms.served_at
        if recorded is None:
            self._joined.add(tenant.name)
        return tenant.changed(served_at=self.state.step if recorded is None else recorded)

    def _forget_tenant(self, name: str) -> None:
        before = self.offers.pop(name, None)
        for flight in () if before is None else before.flights:
            self.flights.pop(flight.job_id, None)
        self.obstacles.pop(name, None)
        self._refused.pop(name, None)
        self._joined.discard(name)

    def _finish(self, ended: TrialEnded) -> None:
        self.flights.pop(ended.job_id, None)
        offer = self.offers.get(ended.trial.tenant)
        if offer is None:
            return
        left = tuple(flight for flight in offer.flights if flight.job_id != ended.job_id)
        offer = self.offers[ended.trial.tenant] = replace(offer, flights=left, best=ended.best)
        self.state = self.state.finished(
            ended.trial, ended.score, ended.bill, reached=ended.reached, seconds=ended.seconds
        )
        self._judge(offer)

    # Who may start. ---------------------------------------------------------------------------------------

    def _look_at_admission(self, tx: Tx) -> None:
        self._blocked_at = self.now
        self._owners = {owner for offer in self.offers.values() for owner in offer.owners.values()}
        before, self._blocked = self._blocked, self.admission.obstacles(tx, self._owners)
        if before == self._blocked:
            return
        changed = {
            owner for owner in {*before, *self._blocked} if before.get(owner) != self._blocked.get(owner)
        }
        for offer in list(self.offers.values()):
            if not changed.isdisjoint(offer.owners.values()):
                self._judge(offer)

    def _lapse(self, tx: Tx) -> None:
        """What ends by itself: refusals, deadlines, feeds whose rest never came."""
        for name in [name for name, one in self._refused.items() if one.until <= self.now]:
            del self._refused[name]
            if name in self.offers:
                self._judge(self.offers[name])
        due = [o for o in self.offers.values() if o.until is not None and o.until <= self.now]
        for offer in due:
            self._apply(self._of[offer.tenant.name].read(tx, offer.tenant.name))

    def _judge(self, offer: TenantOffer) -> None:
        """Hold the tenant back or let it go, as its obstacles say now."""
        now = self.state.tenants.get(offer.tenant.name)
        if now is not None:
            after = self._judged(offer, now)
            if after is not now:
                self.state = self.state.renewed(after)

    def _judged(self, offer: TenantOffer, tenant: Tenant) -> Tenant:
        obstacle = self._obstacle(offer, tenant)
        if obstacle is None:
            self.obstacles.pop(tenant.name, None)
        else:
            self.obstacles[tenant.name] = obstacle
        held = obstacle is not None
        return tenant if tenant.held == held else tenant.changed(held=held)

    def _obstacle(self, offer: TenantOffer, tenant: Tenant) -> Obstacle | None:
        if offer.obstacle is not None:
            return offer.obstacle
        if (by_terms := self._by_terms(offer, tenant)) is not None:
            return by_terms
        if not self._free(offer):
            return self._blocked[next(iter(offer.owners.values()))]
        refusal = self._refused.get(tenant.name)
        if refusal is not None:
            return refusal.obstacle
        if not tenant.open.any() and not tenant.running:
            return Obstacle(Standing.EXHAUSTED, facts={"tried": float(len(tenant.pulls))})
        if not offer.terms.asked and tenant.pulls and not tenant.running:
            expected = outlook(tenant, REFERENCE)
            if expected < self.rules.done_below:
                return Obstacle(Standing.LITTLE_TO_GAIN, facts={"expected": expected})
        return None

    def _free(self, offer: TenantOffer) -> frozenset[str]:
        """Members whose owners may start something."""
        return frozenset(name for name, owner in offer.owners.items() if owner not in self._blocked)

    def _by_terms(self, offer: TenantOffer, tenant: Tenant) -> Obstacle | None:
        terms = offer.terms
        if terms.paused_at is not None:
            return Obstacle(Standing.PAUSED, terms.paused_at, terms.paused_by)
        if terms.until is not None and offer.best is not None and offer.best >= terms.until:
            return Obstacle(Standing.TARGET_REACHED, facts={"until": terms.until, "best": offer.best})
        if terms.deadline is not None and terms.deadline.timestamp() <= self.now:
            return Obstacle(Standing.DEADLINE_PASSED, terms.deadline)
        if tenant.budget < np.inf and tenant.left <= 0 and not tenant.running:
            facts = {"budget": tenant.budget, "spent": tenant.spent}
            return Obstacle(Standing.OWN_BUDGET_SPENT, facts=facts)
        return None

    # The controller's turn. -------------------------------------------------------------------------------

    def turn(self) -> int:
        """Take in what happened, settle what ended, start what comes next; how many trials were started."""
        with self.store.read() as tx:
            self.follow(tx)
        self._settle()
        self._learn()
        for source in self.sources:
            changes = source.prepare()
            self._of |= {one.tenant.name: source for one in changes if isinstance(one, TenantOffer)}
            self._apply(changes)
        self._join()
        self._announce_done()
        if not self.offers:
            return 0
        with self.store.read() as tx:
            machines = devices.machines(tx)
            free = self._places(tx, machines)
            giving = jobs.giving_way(tx)
            self._wants = {one.name: wants for one in machines if (wants := places.wants_of(one))}
            waiting = jobs.wants_of_queued(tx, list(self.flights)) if self._wants else {}
        gone = places.strayed(waiting.values(), machines)
        self._set_free([job for job, stray in zip(waiting, gone, strict=True) if stray])
        started = 0
        left: dict[str, Room | None] = {}
        for place in free:
            more, after = self._fill(places.beside(place, left.get(place.name)))
            started, left[place.name] = started + more, after.room
        rooms = [one.capacity for one in machines if one.open]
        self._make_room(who_gives_way(self.state, self.flights, giving, rooms))
        return started

    def _announce_done(self) -> None:
        """Announces tenants that became done since the last turn, each with its reason."""
        done = {
            name
            for name, obstacle in self.obstacles.items()
            if obstacle.kind in DONE and name in self.offers and not self.offers[name].flights
        }
        new, self._done = sorted(done - self._done), done
        if new and self.tell_done is not None:
            with self.store.write() as tx:
                self._check(tx)
                for name in new:
                    self.tell_done(tx, self.offers[name].members, self.obstacles[name])

    def _set_free(self, stray: Sequence[JobId]) -> None:
        """Slices that wait for a device that has left may run anywhere: what they go on from lies in the lake."""
        if stray:
            with self.store.write() as tx:
                self._check(tx)
                jobs.want_nothing(tx, stray)

    def _make_room(self, asked: Sequence[JobId]) -> None:
        """A slice that is asked stops at its next checkpoint and loses nothing; whoever waits starts then."""
        if not asked:
            return
        with self.store.write() as tx:
            self._check(tx)
            for job in jobs.ask_to_give_way(tx, asked):
                project, user = self.flights[job].owner
                tx.emit("job.asked_to_give_way", job, project_id=project, actor=user, body={})

    def _settle(self) -> None:
        """One transaction for all that ended: results, models that may serve now, the events that tell of them."""
        over, self._over = sorted(job for job in self._over if job in self.flights), set()
        of = {job: self._of[self.flights[job].trial.tenant] for job in over}
        for source in self.sources:
            mine = [job for job in over if of[job] is source]
            if not mine:
                continue
            try:
                with self.store.write() as tx:
                    self._check(tx)
                    settlement = source.settle(tx, mine)
            except EaselError:
                self._over |= set(mine)
                raise
            self._apply(source.settled(settlement))

    def _learn(self) -> None:
        for source in self.sources:
            as_of = source.learnable()
            if as_of is None or as_of <= self.seen.as_of:
                continue
            with self.store.write() as tx:
                self._check(tx)
                tenants.open_turns(tx)
                if tenants.learn_until(tx, self.seen, as_of):
                    tx.emit("pool.learned", "pool", body={"as_of": as_of})
            self._learn_from(as_of)

    def _learn_from(self, as_of: int) -> None:
        if as_of == self.seen.as_of:
            return
        self.seen = replace(self.seen, as_of=as_of)
        for source in self.sources:
            self._apply(source.relearn(as_of))

    def _join(self) -> None:
        """Notes that newcomers wait from this turn on, so that it holds after a restart too."""
        new = {m: owner[0] for name in self._joined for m, owner in self.offers[name].owners.items()}
        if new:
            with self.store.write() as tx:
                self._check(tx)
                tenants.open_turns(tx)
                tenants.join(tx, new, self.state.step)
            self._joined.clear()

    def lead_of(self, name: str) -> str | None:
        """The tenant that stands for this app or study; None where it has nothing to offer."""
        if name in self.offers:
            return name
        return next((lead for lead, offer in self.offers.items() if name in offer.members), None)

    def _check(self, tx: Tx) -> None:
        if self.guard is not None:
            self.guard(tx)

    def _places(self, tx: Tx, machines: Sequence[Device]) -> list[PoolDevice]:
        """Work that cannot start takes no place: its queue is paused, its owner's budget is spent."""
        known = jobs.states(tx, list(self.flights))
        taken = []
        for job, flight in self.flights.items():
            state, device = known.get(job, (JobState.QUEUED, None))
            stuck = state is JobState.QUEUED and flight.owner in self._blocked
            if state not in TERMINAL and not stuck:
                taken.append(places.Taken(device or flight.trial.device, flight.resources))
        return places.idle(machines, taken)

    def decide(self, place: PoolDevice) -> Decision:
        """What the policy would start on `place` now."""
        return self.policy.decide(self.state.on(places.told(place, self._largest), self.now))

    def _fill(self, place: PoolDevice) -> tuple[int, PoolDevice]:
        """Start trials on a device until nothing more fits or nobody wants more; how many, and what is left of it."""
        started = 0
        while places.has_room(place):
            decision = self.decide(place)
            if isinstance(decision, LeaveIdle):
                break
            need = self._need(decision, place)
            if self._start(decision, place, need):
                started += 1
                place = places.after(place, need)
            elif self._seq is None:
                break
        return started, place

    def _need(self, decision: StartTrial, place: PoolDevice) -> Resources:
        found = self.state.tenant(decision.tenant).need(decision.index, place.kind)
        return Resources(1.0, 1024) if found is None else found

    def _start(self, decision: StartTrial, place: PoolDevice, need: Resources) -> bool:
        source, name = self._of[decision.tenant], decision.tenant
        offer = self.offers[name]
        wants = self._wants.get(place.name, {})
        grant = StartGrant(
            self._limit(decision, place), need, self.state.step + 1, self._free(offer), wants, place.kind
        )
        try:
            with self.store.write() as tx:
                self._check(tx)
                if not tenants.take_turn(tx, self.state.step):
                    log.info("another controller started a trial: reading the records again")
                    self.forget()
                    return False
                flight = source.start(tx, decision, grant)
                tenants.serve(tx, list(offer.members), grant.turn)
        except EaselError as refusal:
            # A budget that is spent or a study that changed is its owner's matter: the next has its turn.
            log.info("nothing starts for %s: %s", name, refusal)
            kept = Obstacle(Standing.REFUSED, facts={"why": refusal.message})
            self._refused[name] = _Refusal(kept, self.now + self.rules.retry_s)
            self._judge(offer)
            return False
        self.state = self.state.started(decision)
        self.seen = replace(self.seen, turn=grant.turn)
        self.offers[name] = replace(offer, flights=(*offer.flights, flight))
        self.flights[flight.job_id] = flight
        source.started(flight, grant)
        return True

    def _limit(self, decision: StartTrial, place: PoolDevice) -> float:
        """A multiple of what was predicted, less where a deadline or a budget ends before."""
        tenant, k = self.state.tenant(decision.tenant), decision.index
        limit = max(self.rules.least_limit_s, self.rules.patience * decision.reasons.cost)
        if tenant.deadline < np.inf:
            limit = min(limit, max(tenant.deadline - self.now, 1.0))
        predicted, bill = float(tenant.costs(place)[k]), float(tenant.bills(place)[k])
        if decision.limit < np.inf and bill > 0:
            limit = min(limit, max(decision.limit * predicted / bill, 1.0))
        return limit

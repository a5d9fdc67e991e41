"""The state of the pool: rebuilt from records once, then moved from event to event.

Whoever follows the same events sees the same state; looking writes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from easel.declare.resources import Resources
from easel.ids import JobId
from easel.records.decision import Decision
from easel.records.event import Event
from easel.records.job import TERMINAL
from easel.records.queue import Owner
from easel.records.standing import DONE, Obstacle, Standing
from easel.records.tenant import PoolTurn
from easel.schedule.policies import Policy
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.store import job_placements, tenants
from easel.store.engine import Tx
from easel.store.events import events_after, last_seq
from easel.tenancy import places
from easel.tenancy.outlook import outlook
from easel.tenancy.rules import Rules
from easel.tenancy.source import Change, Flight, TenantGone, TenantOffer, TenantSource, TrialEnded

_ENDS = frozenset({"job.finished", "job.failed", "job.killed"})
_STARTS = frozenset({"app.trial", "study.point_started"})
_ADMISSION = ("queue.", "budget.", "member.", "user.", "project.", "grant.", "prices.")
_AT_ONCE = 2000
REFERENCE = PoolDevice("reference")


class Admission(Protocol):
    """Whose jobs could not start now, whatever the pool has room for."""

    def obstacles(self, tx: Tx, owners: Collection[Owner]) -> Mapping[Owner, Obstacle]: ...


@dataclass
class Refusal:
    """Why a tenant's trial did not start, and until when it is not asked again."""

    obstacle: Obstacle
    until: float


@dataclass
class PoolView:
    """Who shares the pool and what each offers; `now` is the time of the last look."""

    sources: Sequence[TenantSource[Any]]
    admission: Admission
    policy: Policy
    rules: Rules = field(default_factory=Rules)

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
        self._refused: dict[str, Refusal] = {}
        self._until: dict[str, float] = {}
        self._blocked: Mapping[Owner, Obstacle] = {}
        self._blocked_at = -math.inf
        self._owners: set[Owner] = set()
        self._joined: set[str] = set()
        self._largest = Resources(0.5, 16)
        self._stale = False
        self._done: set[str] = set()
        self._told_done: set[str] = set()
        self.now = 0.0

    def decide(self, place: PoolDevice) -> Decision:
        """What the policy would start on `place` now."""
        return self.policy.decide(self.state.on(places.told(place, self._largest), self.now))

    def lead_of(self, name: str) -> str | None:
        """The tenant that stands for this app or study; None where it has nothing to offer."""
        if name in self.offers:
            return name
        return next((lead for lead, offer in self.offers.items() if name in offer.members), None)

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
        running = job_placements.placements(tx, list(self.flights))
        self._over = {job for job in self.flights if job not in running or running[job].state in TERMINAL}

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
        if offer.until is None:
            self._until.pop(name, None)
        else:
            self._until[name] = offer.until
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
        self._until.pop(name, None)
        for flight in () if before is None else before.flights:
            self.flights.pop(flight.job_id, None)
        self.obstacles.pop(name, None)
        self._refused.pop(name, None)
        self._joined.discard(name)
        self._done.discard(name)

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

    def _learn_from(self, as_of: int) -> None:
        if as_of == self.seen.as_of:
            return
        self.seen = replace(self.seen, as_of=as_of)
        for source in self.sources:
            self._apply(source.relearn(as_of))

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
        for name in [name for name, until in self._until.items() if until <= self.now]:
            self._apply(self._of[name].read(tx, name))

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
        if obstacle is not None and obstacle.kind in DONE and not offer.flights:
            self._done.add(tenant.name)
        else:
            self._done.discard(tenant.name)
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

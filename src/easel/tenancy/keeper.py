"""Keeping the pool busy: settling trials that ended, learning from them, starting the next.

A decision is made outside any transaction, on values; a short transaction then starts the trial, if nobody else has
started one since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from easel.declare.resources import Resources, Room
from easel.errors import EaselError, Fenced
from easel.ids import JobId
from easel.price.book import TERMS
from easel.records.decision import LeaveIdle, StartTrial
from easel.records.device import Device
from easel.records.standing import Obstacle, Standing
from easel.schedule.packs import share_of, with_companions
from easel.schedule.state import PoolDevice
from easel.store import devices, job_placements, queue_now, tenants
from easel.store.engine import Store, Tx
from easel.store.queue_now import JobOnDevice
from easel.tenancy import places
from easel.tenancy.newcomers import who_gives_way
from easel.tenancy.pool_view import PoolView, Refusal
from easel.tenancy.source import StartGrant, TenantOffer

log = logging.getLogger("easel.tenancy")


@dataclass(frozen=True)
class _Look:
    """The devices and what jobs hold of them, as they were when a turn began.

    `wants` is what jobs ask for to run on a device, `waiting` what those in the queue ask for, `terms` what devices
    cost that have terms of their own. `contended`: jobs of other kinds hold devices, and more of them wait or some may
    be stopped. `back`: flights that gave way and may not begin again yet.
    """

    machines: Sequence[Device] = ()
    held: Mapping[JobId, JobOnDevice] = field(default_factory=dict)
    contended: bool = False
    wants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    waiting: Mapping[JobId, Mapping[str, str]] = field(default_factory=dict)
    terms: Mapping[str, places.PlaceTerms] | None = None
    back: frozenset[JobId] = frozenset()


@dataclass(kw_only=True)
class Keeper(PoolView):
    """The pool as its controller sees and changes it.

    `guard` refuses, inside a transaction, a controller that was thought dead.
    """

    store: Store
    guard: Callable[[Tx], None] | None = None
    tell_done: Callable[[Tx, Collection[str], Obstacle], None] | None = None
    """Told, once, of the members of a tenant of which nothing more will start by itself."""
    terms: Callable[[Tx], Mapping[str, places.PlaceTerms]] | None = None
    """What devices cost and how often they are taken away, by the terms that they are to be had under."""

    _look: _Look = field(init=False, default=_Look())
    _to_tell: list[str] = field(init=False, default_factory=list)

    def turn(self) -> int:
        """Take in what happened, settle what ended, start what comes next; how many trials were started."""
        with self.store.read() as tx:
            self.follow(tx)
            self._look = self._look_at_machines(tx)
        self._settle()
        self._learn()
        for source in self.sources:
            changes = source.prepare()
            self._of |= {one.tenant.name: source for one in changes if isinstance(one, TenantOffer)}
            self._apply(changes)
        self._join()
        new, self._told_done = sorted(self._done - self._told_done), set(self._done)
        self._to_tell = new if self.tell_done is not None else []
        started = self._start_what_fits() if self.offers else 0
        if self._to_tell:
            with self.store.write() as tx:
                self._check(tx)
                self._announce_done(tx)
            self._to_tell = []
        return started

    def _start_what_fits(self) -> int:
        """Starts what comes next on every device that has room, and asks slices to give way to newcomers."""
        look = self._look
        gone = places.strayed(look.waiting.values(), look.machines)
        self._set_free([job for job, stray in zip(look.waiting, gone, strict=True) if stray])
        started = 0
        left: dict[str, Room | None] = {}
        for place in self._places():
            more, after = self._fill(places.beside(place, left.get(place.name)))
            started, left[place.name] = started + more, after.room
        if look.contended:
            started += self._stand_in_line()
        rooms = [
            PoolDevice(one.name, room=one.capacity, kept_for=one.kept_for or "")
            for one in look.machines
            if one.open
        ]
        giving = [job for job, one in look.held.items() if one.gives_way]
        self._make_room(who_gives_way(self.state, self.flights, look.held, giving, rooms))
        return started

    def _look_at_machines(self, tx: Tx) -> _Look:
        flights, machines, held = list(self.flights), devices.machines(tx), queue_now.held(tx)
        others = [one for job, one in held.items() if job not in self.flights]
        may_stop = any(one.preemptible for one in others)
        back = [job for job, flight in self.flights.items() if flight.goes_back and job not in held]
        waiting = sum(job not in held for job in flights)
        wants = {one.name: asked for one in machines if (asked := places.wants_of(one))}
        apart = any(TERMS in device.labels for device in machines)
        return _Look(
            machines,
            held,
            bool(others) and (may_stop or queue_now.waiting(tx, waiting + 1) > waiting),
            wants,
            job_placements.wants_of_queued(tx, flights) if wants else {},
            self.terms(tx) if apart and self.terms is not None else None,
            job_placements.put_off(tx, back) if back else frozenset(),
        )

    def _announce_done(self, tx: Tx) -> None:
        """Announces tenants that became done since the last turn, each with its reason."""
        for name in self._to_tell:
            if self.tell_done is not None and name in self._done:
                self.tell_done(tx, self.offers[name].members, self.obstacles[name])

    def _set_free(self, stray: Sequence[JobId]) -> None:
        """Slices that wait for a device that has left may run anywhere: what they go on from lies in the lake."""
        if stray:
            with self.store.write() as tx:
                self._check(tx)
                job_placements.want_nothing(tx, stray)

    def _make_room(self, asked: Sequence[JobId]) -> None:
        """A slice that is asked stops at its next checkpoint and loses nothing; whoever waits starts then."""
        if not asked:
            return
        with self.store.write() as tx:
            self._check(tx)
            for job in job_placements.ask_to_give_way(tx, asked):
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

    def _join(self) -> None:
        """Notes that newcomers wait from this turn on, so that it holds after a restart too."""
        new = {m: owner[0] for name in self._joined for m, owner in self.offers[name].owners.items()}
        if new:
            with self.store.write() as tx:
                self._check(tx)
                tenants.open_turns(tx)
                tenants.join(tx, new, self.state.step)
            self._joined.clear()

    def _check(self, tx: Tx) -> None:
        if self.guard is not None:
            self.guard(tx)

    def _places(self) -> list[PoolDevice]:
        """The devices with the room that trials and everybody's jobs leave.

        What is being killed is as good as gone: who comes next is chosen meanwhile.
        """
        others = [
            places.Taken(one.device or "", one.resources)
            for job, one in self._look.held.items()
            if job not in self.flights and not one.ending
            for _ in range(one.workers)
        ]
        return places.idle(self._look.machines, [*self._taken(), *others], self._look.terms)

    def _taken(self) -> list[places.Taken]:
        """What trials hold. Work that cannot start takes no place: its queue is paused, its owner's budget is spent, it
        fits nowhere, it has only just given way."""
        taken = []
        for job, flight in self.flights.items():
            at = self._look.held.get(job)
            if at is None and (flight.owner in self._blocked or job in self._over or job in self._look.back):
                continue
            device, meant = "" if at is None else at.device or "", flight.trial.device
            taken.append(places.Taken(device, flight.resources, meant, waits=at is None))
        return taken

    def _stand_in_line(self) -> int:
        """Starts one trial more for each device that is full of others' jobs: it waits in its owner's queue, whose
        share says when it is its turn. No more than one, so that what runs next is chosen when it begins."""
        in_line = {flight.trial.device for job, flight in self.flights.items() if job not in self._look.held}
        started = 0
        for place in places.idle(self._look.machines, self._taken(), self._look.terms):
            if place.name not in in_line and self._fill(place, at_most=1)[0]:
                in_line.add(place.name)
                started += 1
        return started

    def _fill(self, place: PoolDevice, at_most: float = np.inf) -> tuple[int, PoolDevice]:
        """Start trials on a device until nothing more fits or nobody wants more; how many, and what is left of it."""
        started = 0
        while started < at_most and places.has_room(place):
            decision = self.decide(place)
            if isinstance(decision, LeaveIdle):
                break
            for one in self._together(decision, place) if at_most > 1 else (decision,):
                need = self._need(one, place)
                if not self._start(one, place, need):
                    break
                started += 1
                place = places.after(place, need)
            if self._seq is None:
                break
        return started, place

    def _together(self, decision: StartTrial, place: PoolDevice) -> Sequence[StartTrial]:
        """Returns what is started with one decision: on a GPU several trials that are trained as one program."""
        state = self.state.on(places.told(place, self._largest), self.now)
        return with_companions(self.policy, state, decision)

    def _need(self, decision: StartTrial, place: PoolDevice) -> Resources:
        found = self.state.tenant(decision.tenant).need(decision.index, place.kind) or Resources(1.0, 1024)
        return found if decision.pack is None else share_of(found, decision.pack.size)

    def _start(self, decision: StartTrial, place: PoolDevice, need: Resources) -> bool:
        source, name = self._of[decision.tenant], decision.tenant
        offer = self.offers[name]
        wants = self._look.wants.get(place.name, {})
        grant = StartGrant(
            self._limit(decision, place),
            need,
            self.state.step + 1,
            self._free(offer),
            wants,
            place.kind,
            self._look.machines,
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
                self._announce_done(tx)  # at the cost of no transaction of its own
        except Fenced:
            raise  # it says nothing of the tenant
        except EaselError as refusal:
            # A budget that is spent or a study that changed is its owner's matter: the next has its turn.
            log.info("nothing starts for %s: %s", name, refusal)
            kept = Obstacle(Standing.REFUSED, facts={"why": refusal.message})
            self._refused[name] = Refusal(kept, self.now + self.rules.retry_s)
            self._judge(offer)
            return False
        self._to_tell = []
        self.state = self.state.started(decision)
        self.seen = replace(self.seen, turn=grant.turn)
        terms = replace(offer.terms, asked=False, served_at=grant.turn)
        self.offers[name] = replace(offer, flights=(*offer.flights, flight), terms=terms)
        self.flights[flight.job_id] = flight
        source.started(flight, grant)
        return True

    def _limit(self, decision: StartTrial, place: PoolDevice) -> float:
        """A multiple of what was predicted, less where a deadline or a budget ends before."""
        tenant, k = self.state.tenant(decision.tenant), decision.index
        limit = max(self.rules.least_limit_s, self.rules.patience * decision.reasons.cost)
        if tenant.deadline < np.inf:
            limit = min(limit, max(tenant.deadline - self.now, 1.0))
        size = 1 if decision.pack is None else decision.pack.size
        predicted, bill = float(tenant.costs(place)[k]), float(tenant.bills(place)[k]) / size
        if decision.limit < np.inf and bill > 0:
            limit = min(limit, max(decision.limit * predicted / bill, 1.0))
        return limit

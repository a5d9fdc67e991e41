"""What a policy sees: tenants with their beliefs, devices, the moment. Values, replaced and never changed.

The real controller and the simulator both move from one `PoolState` to the next with `joined`, `left`, `fed`,
`started` and `finished`; each touches one tenant, so the next decision rescores one tenant.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from easel.declare.resources import Resources, Room
from easel.errors import InvalidInput, NotFound
from easel.optimise.acquire import usable_cost
from easel.optimise.arrays import Array
from easel.records.decision import StartTrial
from easel.records.packing import Packing
from easel.schedule.interruptions import NEVER, Interruptions
from easel.schedule.members import Members

Mask = npt.NDArray[np.bool_]


class Belief(Protocol):
    """A posterior over one tenant's candidates: `mean` and `sd` `(K,)`."""

    @property
    def mean(self) -> Array: ...
    @property
    def sd(self) -> Array: ...
    def column(self, k: int) -> Array:
        """`(K,)` posterior covariances with candidate `k`."""
        ...

    def observed(self, k: int, y: float, extra_noise: float = 0.0) -> Belief: ...
    def believed(self, k: int) -> Belief: ...


@runtime_checkable
class SharedBelief(Belief, Protocol):
    """A belief that results of other tenants move."""

    def told(self, of: Any) -> SharedBelief:
        """The same tenant's belief after the result that made `of`."""
        ...


@runtime_checkable
class SlicedBelief(Belief, Protocol):
    """A belief over learning curves: trials may stop at a rung and go on later."""

    @property
    def last(self) -> int: ...
    def rung_at(self, share: float) -> int:
        """The furthest rung that lies at `share` of the whole trial or before; −1 for none."""
        ...

    def reached(self, k: int, rung: int, quality: float, seconds: float | None = None) -> SlicedBelief: ...


@dataclass(frozen=True)
class PoolDevice:
    """One place for one trial. A candidate of cost `c` takes `c/speed` on it, billed `price` times that.

    `kind` selects a tenant's own costs for such devices (`Tenant.cost_on`) where they are known. `room` is what
    it has left; None holds everything. `interruptions` is how often it is taken away. Where it is `kept_for` a project,
    nobody else may run there.
    """

    name: str
    speed: float = 1.0
    price: float = 1.0
    kind: str = ""
    room: Room | None = None
    interruptions: Interruptions = NEVER
    kept_for: str = ""

    @property
    def alike(self) -> DeviceKey:
        """Devices for which this is equal are offered the same candidates."""
        return DeviceKey(self.kind, self.speed, self.room, self.interruptions, self.kept_for)


class DeviceKey(NamedTuple):
    """What the best candidate of a tenant depends on."""

    kind: str
    speed: float
    room: Room | None
    interruptions: Interruptions = NEVER
    kept_for: str = ""


@dataclass(frozen=True)
class Look:
    """A trial on `fraction` of the data: cost × `cost`, quality lower by `bias` with variance `noise`."""

    fraction: float
    cost: float
    bias: float = 0.0
    noise: float = 0.01


@dataclass(frozen=True)
class Pull:
    """One finished trial, or a slice of one: `bound` is the upper confidence bound that its candidate had when chosen.

    `fraction` is the share of the data of a look, or how far a slice came; `seconds` what a slice took in time of the
    reference device, where that is known.
    """

    candidate: int
    quality: float
    bound: float = np.inf
    fraction: float = 1.0
    seconds: float | None = None

    @property
    def closes(self) -> bool:
        """Whether nothing more is to be had from its candidate: it failed, or the trial is over. One that the platform
        lost came nowhere (`fraction` 0) and says nothing of its candidate."""
        return self.fraction >= 1.0 or (not np.isfinite(self.quality) and self.fraction > 0.0)


class CostKey(NamedTuple):
    """Where a tenant remembers its costs on such devices."""

    kind: str
    speed: float
    interruptions: Interruptions = NEVER


class FitKey(NamedTuple):
    """Where a tenant remembers which of its candidates fit into such a room of such a device."""

    room: Room
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Tenant:
    """One app in the pool.

    `cost` `(K,)` is the predicted cost of each candidate on a device of speed 1. `ceiling` is the highest
    quality there can be (1 for an accuracy), `baseline` what the tenant has before any trial. `taken` `(K,)`
    marks candidates that are running, done or failed. A slice shorter than `least_slice` on the device is not worth its
    start: the trial goes further at once. `served_at` is the step at which the tenant joined or
    last was served: what fairness counts from. `needs` `(K,)` is what each candidate takes of a device; without it
    all fit everywhere; `needs_on` is the same for devices of a kind, None for a candidate that is not run there.
    `rates` `(K,)` is the money that a candidate costs in a unit of time on a device of price 1, `rates_on` that on
    devices of a kind. `packs_on` `(K,)` says with what each may be trained as one program on such devices. `stops`
    `(K,)` marks candidates whose slices give way within seconds when asked to; None: all. `project` is whose it is.
    While it is `held` nothing of it may start, whatever it promises.
    """

    name: str
    candidates: tuple[str, ...]
    belief: Belief
    cost: Array
    weight: float = 1.0
    deadline: float = np.inf
    budget: float = np.inf
    baseline: float = 0.0
    ceiling: float = np.inf
    looks: tuple[Look, ...] = ()
    cost_on: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    needs: tuple[Resources, ...] = ()
    needs_on: Mapping[str, tuple[Resources | None, ...]] = field(default_factory=lambda: MappingProxyType({}))
    rates: Array | None = None
    rates_on: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    packs_on: Mapping[str, tuple[Packing | None, ...]] = field(default_factory=lambda: MappingProxyType({}))
    least_slice: float = 0.0
    stops: Mask | None = None
    project: str = ""
    held: bool = False
    # what has happened so far
    best: float = -np.inf
    spent: float = 0.0
    reserved: float = 0.0
    pulls: tuple[Pull, ...] = ()
    running: tuple[StartTrial, ...] = ()
    taken: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    served_at: int = 0
    starts: int = 0
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """Scores that policies computed from this very value; a changed tenant is a new value, its memo empty."""

    def __post_init__(self) -> None:
        K = len(self.candidates)
        if self.cost.shape != (K,) or self.belief.mean.shape != (K,):
            raise InvalidInput(f"{self.name}: {K} candidates need {K} costs and beliefs over {K}")
        if len(self.taken) != K:
            object.__setattr__(self, "taken", np.zeros(K, dtype=bool))
        if self.best == -np.inf:
            object.__setattr__(self, "best", self.baseline)

    def changed(self, **fields: Any) -> Self:
        """The next value of this tenant; of what was remembered only the costs still hold."""
        kept: dict[Hashable, Any] = {}
        if "cost" not in fields and "needs" not in fields:
            kept = {k: v for k, v in self.memo.items() if isinstance(k, CostKey | FitKey)}
        return replace(self, memo=kept, **fields)

    @property
    def open(self) -> Mask:
        """`(K,)`: neither observed, failed nor running."""
        return ~self.taken

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.budget - self.spent - self.reserved

    def costs(self, device: PoolDevice) -> Array:
        """`(K,)` predicted times on `device`; unknown ones are typical, free ones nearly free."""
        key = CostKey(device.kind, device.speed, device.interruptions)
        if key not in self.memo:
            base = self.cost_on.get(device.kind, self.cost)
            known = base[np.isfinite(base) & (base > 0)]
            typical = float(np.median(known)) if len(known) else 1.0
            speed = device.speed if device.kind not in self.cost_on else 1.0
            self.memo[key] = device.interruptions.stretched(usable_cost(base, typical) / speed)
        return np.asarray(self.memo[key])

    def fits(self, room: Room, kind: str = "") -> Mask:
        """`(K,)`: candidates that find a place in `room` of a device of this kind."""
        key = FitKey(room, kind)
        if key not in self.memo:
            needs = self.needs_on.get(kind, self.needs)
            sizes = {need: need is not None and room.fits(need) for need in set(needs)}
            self.memo[key] = np.array([sizes[need] for need in needs], dtype=bool)
        return np.asarray(self.memo[key])

    def need(self, k: int, kind: str) -> Resources | None:
        """What candidate `k` takes of a device of this kind; None where that is not known."""
        if kind in self.needs_on:
            return self.needs_on[kind][k]
        return self.needs[k] if self.needs else None

    def bills(self, device: PoolDevice, slices: Array | None = None) -> Array:
        """`(K,)` what each candidate would be billed on `device`, or its next slice of these times."""
        times = (self.costs(device) if slices is None else slices) * device.price
        if self.rates is None:
            return times
        return times * self.rates_on.get(device.kind, self.rates)

    def rate(self, k: int, device: PoolDevice) -> float:
        """What candidate `k` is billed for a unit of time on `device`."""
        if self.rates is None:
            return device.price
        return device.price * float(self.rates_on.get(device.kind, self.rates)[k])

    def may_run(self, device: PoolDevice, now: float, slices: Array | None = None) -> Mask:
        """`(K,)`: open, not held back, within the device's room and the budget, ready before the deadline.

        `slices` `(K,)` are the times of what is meant, where it is not the whole trials.
        """
        if self.held or device.kept_for not in ("", self.project):
            return np.zeros(len(self.candidates), dtype=bool)
        times = self.costs(device) if slices is None else slices
        mask = self.open & np.isfinite(times)
        if device.room is not None and self.needs:
            mask &= self.fits(device.room, device.kind)
        if self.budget < np.inf:
            mask &= self.bills(device, slices) <= self.left
        if self.deadline < np.inf:
            mask &= now + times <= self.deadline
        return np.asarray(mask)

    def started(self, trial: StartTrial, step: int) -> Self:
        """`trial` runs from now on: its candidate is taken and its cost reserved. `step` counts all starts."""
        taken = self.taken.copy()
        taken[trial.index] = True
        return self.changed(
            taken=taken,
            running=(*self.running, trial),
            reserved=self.reserved + (trial.limit if self.budget < np.inf else 0.0),
            served_at=step,
            starts=self.starts + 1,
        )

    def finished(
        self,
        trial: StartTrial,
        quality: float,
        bill: float,
        *,
        reached: float | None = None,
        seconds: float | None = None,
    ) -> Self:
        """`trial`, which was running, ended with `quality` (NaN: it failed) and cost `bill`.

        `reached` is how far it came where that is not as far as was meant, `seconds` what it took in time of the
        reference device where the bill does not tell.
        """
        running = list(self.running)
        running.remove(trial)
        if isinstance(self.belief, SlicedBelief) or (reached is not None and reached < 1.0):
            return self._slice_finished(trial, tuple(running), quality, bill, reached, seconds)
        look = next((k for k in self.looks if k.fraction == trial.fraction), None)
        taken = self.taken
        if look is not None and trial.fraction < 1.0:
            # a partial look leaves the full trial open
            taken = self.taken.copy()
            taken[trial.index] = False
        bias, noise = (look.bias, look.noise) if look is not None and trial.fraction < 1.0 else (0.0, 0.0)
        ok = bool(np.isfinite(quality))
        return self.changed(
            taken=taken,
            running=tuple(running),
            reserved=sum(r.limit for r in running) if self.budget < np.inf else 0.0,
            spent=self.spent + bill,
            belief=self.belief.observed(trial.index, quality + bias, noise) if ok else self.belief,
            best=max(self.best, quality) if ok else self.best,
            pulls=(
                *self.pulls,
                Pull(trial.index, quality, trial.reasons.acquisition, trial.fraction),
            ),
        )

    def _slice_finished(
        self,
        trial: StartTrial,
        running: tuple[StartTrial, ...],
        quality: float,
        bill: float,
        reached: float | None,
        seconds: float | None,
    ) -> Self:
        """A slice that ended leaves its candidate open for the next; one that failed, or the last, closes it."""
        part = trial.slice
        if seconds is None and part is not None and part.price > 0.0:
            seconds = bill / part.price / part.scale
        if reached is None:
            reached = 1.0 if part is None else part.share
        pull = Pull(trial.index, quality, trial.reasons.acquisition, reached, seconds)
        taken = self.taken.copy()
        taken[trial.index] = pull.closes
        return self.changed(
            taken=taken,
            running=running,
            reserved=sum(r.limit for r in running) if self.budget < np.inf else 0.0,
            spent=self.spent + bill,
            belief=_taught(self.belief, pull),
            best=max(self.best, quality) if np.isfinite(quality) else self.best,
            pulls=(*self.pulls, pull),
        )

    def resumed(
        self, pulls: Sequence[Pull], bills: Sequence[float], running: Sequence[StartTrial], starts: int
    ) -> Self:
        """Returns this fresh tenant after trials and slices that ended with `pulls` and were billed `bills`.

        In that order, and while `running` goes on: the same as if each had been `started` and `finished`."""
        belief, best, spent = self.belief, self.best, self.spent
        taken = self.taken.copy()
        for pull, bill in zip(pulls, bills, strict=True):
            ok = bool(np.isfinite(pull.quality))
            taken[pull.candidate] = pull.closes
            spent = spent + bill
            belief, best = _taught(belief, pull), max(best, pull.quality) if ok else best
        taken[[trial.index for trial in running]] = True
        return self.changed(
            belief=belief,
            best=best,
            spent=spent,
            taken=taken,
            pulls=tuple(pulls),
            running=tuple(running),
            reserved=sum(r.limit for r in running) if self.budget < np.inf else 0.0,
            starts=starts,
        )


def _taught(belief: Belief, pull: Pull) -> Belief:
    """What is believed after a trial or a slice of one; a part of a trial says nothing to who knows whole ones only."""
    if not np.isfinite(pull.quality):
        return belief
    if isinstance(belief, SlicedBelief):
        return belief.reached(pull.candidate, belief.rung_at(pull.fraction), pull.quality, pull.seconds)
    return belief.observed(pull.candidate, pull.quality) if pull.fraction >= 1.0 else belief


@dataclass(frozen=True, eq=False)
class PoolState:
    """The pool at one moment, with one idle `device` to fill.

    `step` counts starts so far; `memory` is what the policy's last decision asked to be told again, forgotten
    when a tenant joins, leaves or feeds.
    """

    tenants: Mapping[str, Tenant]
    device: PoolDevice
    now: float = 0.0
    step: int = 0
    memory: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.tenants, Members):
            object.__setattr__(self, "tenants", Members(dict(self.tenants)))

    @property
    def members(self) -> Members[Tenant]:
        """`tenants`, as what it is."""
        assert isinstance(self.tenants, Members)
        return self.tenants

    def on(self, device: PoolDevice, now: float) -> Self:
        return replace(self, device=device, now=now)

    def tenant(self, name: str) -> Tenant:
        try:
            return self.tenants[name]
        except KeyError:
            raise NotFound(f"no tenant {name} in the pool") from None

    def joined(self, tenant: Tenant) -> Self:
        """A new tenant; its waiting time starts now."""
        arrived = tenant.changed(served_at=self.step)
        return replace(self, tenants={**self.tenants, tenant.name: arrived}, memory=())

    def left(self, name: str) -> Self:
        """The tenant is gone; results of its running trials are ignored when they come."""
        self.tenant(name)
        rest = {key: t for key, t in self.tenants.items() if key != name}
        return replace(self, tenants=rest, memory=())

    def fed(self, name: str, belief: Belief, cost: Array | None = None) -> Self:
        """New data: every finished candidate may be tried again, under a fresh belief and perhaps new costs.

        The best quality so far stays (that model still serves); running trials stay taken.
        """
        t = self.tenant(name)
        taken = np.zeros(len(t.candidates), dtype=bool)
        taken[[trial.index for trial in t.running]] = True
        again = t.changed(belief=belief, cost=t.cost if cost is None else cost, taken=taken, pulls=())
        return replace(self, tenants={**self.tenants, name: again}, memory=())

    def renewed(self, tenant: Tenant) -> Self:
        """A tenant of the pool under other terms, with other beliefs or costs; its turn stays."""
        before = self.tenant(tenant.name)
        after = tenant.changed(served_at=before.served_at)
        return replace(self, tenants=self.members.succeeded(tenant.name, after))

    def started(self, trial: StartTrial) -> Self:
        """`trial` runs from now on."""
        busy = self.tenant(trial.tenant).started(trial, self.step + 1)
        tenants = self.members.succeeded(trial.tenant, busy)
        return replace(self, tenants=tenants, step=self.step + 1, memory=trial.memory)

    def finished(
        self,
        trial: StartTrial,
        quality: float,
        bill: float,
        *,
        reached: float | None = None,
        seconds: float | None = None,
    ) -> Self:
        """`trial` ended with `quality` (NaN: it failed) and cost `bill`; no change if unknown here."""
        t = self.tenants.get(trial.tenant)
        if t is None or trial not in t.running:
            return self
        done = t.finished(trial, quality, bill, reached=reached, seconds=seconds)
        if not isinstance(done.belief, SharedBelief):
            return replace(self, tenants=self.members.succeeded(trial.tenant, done))
        tenants = {**self.tenants, trial.tenant: done}
        for name, other in self.tenants.items():
            if name != trial.tenant and isinstance(other.belief, SharedBelief):
                tenants[name] = other.changed(belief=other.belief.told(done.belief))
        return replace(self, tenants=tenants)

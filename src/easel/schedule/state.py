"""What a policy sees: tenants with their beliefs, devices, the moment. Values, replaced and never changed.

The real controller and the simulator both move from one `PoolState` to the next with `joined`, `left`, `fed`,
`started` and `finished`; each touches one tenant, so the next decision rescores one tenant.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput, NotFound
from easel.optimise.acquire import usable_cost
from easel.optimise.arrays import Array
from easel.records.decision import StartTrial
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


@dataclass(frozen=True)
class Device:
    """One place for one trial. A candidate of cost `c` takes `c/speed` on it, billed `price` times that.

    `kind` selects a tenant's own costs for such devices (`Tenant.cost_on`) where they are known.
    """

    name: str
    speed: float = 1.0
    price: float = 1.0
    kind: str = ""


@dataclass(frozen=True)
class Look:
    """A trial on `fraction` of the data: cost × `cost`, quality lower by `bias` with variance `noise`."""

    fraction: float
    cost: float
    bias: float = 0.0
    noise: float = 0.01


@dataclass(frozen=True)
class Pull:
    """One finished trial: `bound` is the upper confidence bound that its candidate had when chosen."""

    candidate: int
    quality: float
    bound: float = np.inf
    fraction: float = 1.0


class CostKey(NamedTuple):
    """Where a tenant remembers its costs on such devices."""

    kind: str
    speed: float


@dataclass(frozen=True, eq=False)
class Tenant:
    """One app in the pool.

    `cost` `(K,)` is the predicted cost of each candidate on a device of speed 1. `ceiling` is the highest
    quality there can be (1 for an accuracy), `baseline` what the tenant has before any trial. `taken` `(K,)`
    marks candidates that are running, done or failed. `served_at` is the step at which the tenant joined or
    last was served: what fairness counts from.
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
        if "cost" not in fields:
            kept = {k: v for k, v in self.memo.items() if isinstance(k, CostKey)}
        return replace(self, memo=kept, **fields)

    @property
    def open(self) -> Mask:
        """`(K,)`: neither observed, failed nor running."""
        return ~self.taken

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.budget - self.spent - self.reserved

    def costs(self, device: Device) -> Array:
        """`(K,)` predicted times on `device`; unknown ones are typical, free ones nearly free."""
        key = CostKey(device.kind, device.speed)
        if key not in self.memo:
            base = self.cost_on.get(device.kind, self.cost)
            known = base[np.isfinite(base) & (base > 0)]
            typical = float(np.median(known)) if len(known) else 1.0
            speed = device.speed if device.kind not in self.cost_on else 1.0
            self.memo[key] = usable_cost(base, typical) / speed
        return np.asarray(self.memo[key])

    def may_run(self, device: Device, now: float) -> Mask:
        """`(K,)`: open, affordable within the budget and ready before the deadline."""
        times = self.costs(device)
        mask = self.open & np.isfinite(times)
        if self.budget < np.inf:
            mask &= times * device.price <= self.left
        if self.deadline < np.inf:
            mask &= now + times <= self.deadline
        return np.asarray(mask)


@dataclass(frozen=True, eq=False)
class PoolState:
    """The pool at one moment, with one idle `device` to fill.

    `step` counts starts so far; `memory` is what the policy's last decision asked to be told again, forgotten
    when a tenant joins, leaves or feeds.
    """

    tenants: Mapping[str, Tenant]
    device: Device
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

    def on(self, device: Device, now: float) -> Self:
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

    def started(self, trial: StartTrial) -> Self:
        """`trial` runs from now on: its candidate is taken and its cost reserved."""
        t = self.tenant(trial.tenant)
        taken = t.taken.copy()
        taken[trial.index] = True
        busy = t.changed(
            taken=taken,
            running=(*t.running, trial),
            reserved=t.reserved + (trial.limit if t.budget < np.inf else 0.0),
            served_at=self.step + 1,
            starts=t.starts + 1,
        )
        tenants = self.members.succeeded(trial.tenant, busy)
        return replace(self, tenants=tenants, step=self.step + 1, memory=trial.memory)

    def finished(self, trial: StartTrial, quality: float, bill: float) -> Self:
        """`trial` ended with `quality` (NaN: it failed) and cost `bill`; no change if unknown here."""
        t = self.tenants.get(trial.tenant)
        if t is None or trial not in t.running:
            return self
        running = list(t.running)
        running.remove(trial)
        look = next((k for k in t.looks if k.fraction == trial.fraction), None)
        taken = t.taken
        if look is not None and trial.fraction < 1.0:
            # a partial look leaves the full trial open
            taken = t.taken.copy()
            taken[trial.index] = False
        bias, noise = (look.bias, look.noise) if look is not None and trial.fraction < 1.0 else (0.0, 0.0)
        ok = bool(np.isfinite(quality))
        done = t.changed(
            taken=taken,
            running=tuple(running),
            reserved=sum(r.limit for r in running) if t.budget < np.inf else 0.0,
            spent=t.spent + bill,
            belief=t.belief.observed(trial.index, quality + bias, noise) if ok else t.belief,
            best=max(t.best, quality) if ok else t.best,
            pulls=(
                *t.pulls,
                Pull(trial.index, quality, trial.reasons.acquisition, trial.fraction),
            ),
        )
        if not isinstance(done.belief, SharedBelief):
            return replace(self, tenants=self.members.succeeded(trial.tenant, done))
        tenants = {**self.tenants, trial.tenant: done}
        for name, other in self.tenants.items():
            if name != trial.tenant and isinstance(other.belief, SharedBelief):
                tenants[name] = other.changed(belief=other.belief.told(done.belief))
        return replace(self, tenants=tenants)

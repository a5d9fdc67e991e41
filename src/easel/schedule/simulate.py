"""A discrete-event simulation of the pool: the same policies as the real controller, over a table.

Deterministic: all chance (failures, cost noise) is drawn from the one generator given, in order of starts.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.records.decision import StartTrial
from easel.schedule.curve_belief import CurveBelief, CurvePrior
from easel.schedule.curves import CurveTable
from easel.schedule.measure import LossCurve
from easel.schedule.policies.compose import Composed, Policy
from easel.schedule.policies.rank import LargestScore
from easel.schedule.policies.score import TrueGain
from easel.schedule.prior import Prior
from easel.schedule.state import Belief, PoolDevice, PoolState, Tenant
from easel.schedule.table import ScoreTable


@dataclass(frozen=True)
class World:
    """What is simulated: the table, the devices and what may happen.

    `seconds_on` says of a kind of device how long each candidate `(K,)` takes there for a second on the reference
    device; infinite where it is not run. On other devices that is `1/speed` for all.
    `arrivals` and `departures` are by tenant name (absent: at 0, never). A trial fails with probability
    `failures`; its time is multiplied by `exp(N(0, cost_noise))`, unknown to the policy.
    """

    table: ScoreTable
    devices: tuple[PoolDevice, ...] = (PoolDevice("d0"),)
    arrivals: Mapping[str, float] = field(default_factory=dict)
    departures: Mapping[str, float] = field(default_factory=dict)
    failures: float = 0.0
    cost_noise: float = 0.0
    ceiling: float = np.inf
    unit_cost: bool = False
    """Count runs in place of cost: every trial takes one unit and the policy is told so."""
    seconds_on: Mapping[str, Array] = field(default_factory=dict)
    curves: CurveTable | None = None
    """With curves a trial may run slice by slice, and its time is the table's own, unknown to the policy."""

    @classmethod
    def of_curves(cls, curves: CurveTable, devices: Sequence[PoolDevice], **more: Any) -> World:
        """A world in which the curves are the truth; qualities are shares."""
        final = ScoreTable(curves.tenants, curves.candidates, curves.quality[:, :, -1], curves.cost[:, :, -1])
        return cls(final, tuple(devices), curves=curves, ceiling=1.0, **more)

    def seconds(self, device: PoolDevice) -> Array:
        """`(K,)`: seconds on `device` for a second on the reference device."""
        usual = np.full(len(self.table.candidates), 1.0 / device.speed)
        return np.asarray(self.seconds_on.get(device.kind, usual))

    def speed(self, device: PoolDevice) -> float:
        """How fast it is for whom it suits best."""
        return float(1.0 / self.seconds(device).min())

    def costs_on(self, cost: Array) -> dict[str, Array]:
        """What candidates of such costs take on devices of each kind."""
        return {kind: cost * factor for kind, factor in self.seconds_on.items()}

    @property
    def best(self) -> Array:
        """`(n,)`: the best that each tenant could have."""
        return np.nan_to_num(self.table.best if self.curves is None else self.curves.best)


@dataclass(frozen=True)
class TrialRecord:
    """One trial as it went: what was decided, when, what came out (NaN: failed or stopped), and the bill."""

    trial: StartTrial
    began: float
    ended: float
    quality: float
    bill: float


@dataclass(frozen=True, eq=False)
class Run:
    """The mean loss over time, and every trial in the order of starts."""

    curve: LossCurve
    steps: tuple[TrialRecord, ...]


def tenants(world: World, priors: Prior | Mapping[str, Prior]) -> list[Tenant]:
    """The table's rows as tenants under one prior or one each; missing cells cannot run."""
    table = world.table
    found = []
    for i, name in enumerate(table.tenants):
        prior = priors if isinstance(priors, Prior) else priors[name]
        cost = np.ones(len(table.candidates)) if world.unit_cost else table.cost[i]
        absent = np.isnan(table.quality[i])
        belief, there = prior.belief(), world.costs_on(cost)
        found.append(
            Tenant(name, table.candidates, belief, cost, ceiling=world.ceiling, taken=absent, cost_on=there)
        )
    return found


def curve_tenants(world: World, prior: CurvePrior) -> list[Tenant]:
    """The tenants of a world of curves; what they cost is the policy's to learn."""
    belief = prior.belief()
    cost = belief.costs()[:, -1]
    there = world.costs_on(cost)
    return [
        Tenant(name, world.table.candidates, belief, cost, ceiling=world.ceiling, cost_on=there)
        for name in world.table.tenants
    ]


HINDSIGHT = "greedy with hindsight"


def hindsight(table: ScoreTable) -> Composed:
    """The greedy schedule that knows every quality: the largest true gain per cost. Good, but no bound."""
    truth = dict(zip(table.tenants, table.quality, strict=True))
    return Composed(HINDSIGHT, LargestScore(), TrueGain(truth))


ARRIVE, LEAVE, FREE = 0, 1, 2


def simulate(
    world: World,
    policy: Policy,
    members: Sequence[Tenant],
    horizon: float,
    rng: np.random.Generator,
) -> Run:
    """Run the pool until `horizon` or until nothing is left to run.

    The loss at a moment is the mean over the tenants that have arrived and not left of (the best in the
    table − the best so far).
    """
    if horizon <= 0 or not world.devices:
        raise InvalidInput("a simulation needs a device and a horizon above zero")
    table = world.table
    place = {name: i for i, name in enumerate(table.tenants)}
    top = dict(zip(table.tenants, world.best, strict=True))
    by_name = {t.name: t for t in members}
    # (time, what, number, whom or which): at equal times arrivals come before results
    events: list[tuple[float, int, int, str | TrialRecord]] = []
    for number, name in enumerate(by_name):
        events.append((world.arrivals.get(name, 0.0), ARRIVE, number, name))
        if name in world.departures:
            events.append((world.departures[name], LEAVE, number, name))
    heapq.heapify(events)
    state = PoolState({}, world.devices[0])
    losses = _Losses(top)
    idle = _Idle(world)
    devices = {d.name: d for d in world.devices}
    times, means, steps = [0.0], [0.0], list[TrialRecord]()
    while events and events[0][0] <= horizon:
        now = events[0][0]
        while events and events[0][0] == now:
            _, kind, _, what = heapq.heappop(events)
            if isinstance(what, TrialRecord):
                idle.freed(devices[what.trial.device])
                state = state.finished(what.trial, what.quality, what.bill)
                losses.moved(state, what.trial.tenant)
            elif kind == ARRIVE:
                state = state.joined(by_name[what])
                losses.forget()
            else:
                state = state.left(what)
                losses.forget()
        for device in idle.in_turn():
            state = state.on(device, now)
            decision = policy.decide(state)
            if not isinstance(decision, StartTrial):
                idle.left(device)
                continue
            row = place[decision.tenant]
            if world.curves is None:
                step = _outcome(decision, table.quality[row], device, world, now, rng)
            else:
                belief = state.tenants[decision.tenant].belief
                step = _slice_outcome(decision, world.curves, row, belief, device, world, now, rng)
            state = state.started(decision)
            heapq.heappush(events, (step.ended, FREE, len(steps), step))
            steps.append(step)
        times.append(now)
        means.append(losses.mean(state))
    times[0], means[0] = 0.0, means[1] if len(means) > 1 else 0.0
    return Run(LossCurve(np.array(times), np.array(means)), tuple(steps))


class _Idle:
    """Idle devices, the fastest first and of equally fast ones whoever has been idle longest.

    Devices alike in kind, speed and price are asked until one of them is left idle: so would the others be.
    """

    def __init__(self, world: World) -> None:
        self._alike: dict[tuple[str, float, float], deque[tuple[int, PoolDevice]]] = {}
        self._speeds = {_alike(device): world.speed(device) for device in world.devices}
        self._count = 0
        for device in world.devices:
            self.freed(device)

    def freed(self, device: PoolDevice) -> None:
        self._alike.setdefault(_alike(device), deque()).append((self._count, device))
        self._count += 1

    def in_turn(self) -> Iterator[PoolDevice]:
        """Each is taken out as it comes, unless `left` puts it back."""
        self._asked = {key for key, waiting in self._alike.items() if waiting}
        while self._asked:
            key = min(self._asked, key=lambda key: (-self._speeds[key], self._alike[key][0][0]))
            self._taken = self._alike[key].popleft()
            yield self._taken[1]
            if not self._alike[key]:
                self._asked.discard(key)

    def left(self, device: PoolDevice) -> None:
        self._alike[_alike(device)].appendleft(self._taken)
        self._asked.discard(_alike(device))


def _alike(device: PoolDevice) -> tuple[str, float, float]:
    return device.kind, device.speed, device.price


class _Losses:
    """What everybody in the pool still lacks, in its order: `top` is the best that each could have."""

    def __init__(self, top: Mapping[str, float]) -> None:
        self._top = top
        self.forget()

    def forget(self) -> None:
        self._place: dict[str, int] = {}
        self._losses = np.empty(0)

    def moved(self, state: PoolState, name: str) -> None:
        if name in self._place:
            self._losses[self._place[name]] = self._loss(name, state.tenants[name])

    def mean(self, state: PoolState) -> float:
        if not self._place:
            self._place = {name: place for place, name in enumerate(state.tenants)}
            self._losses = np.array([self._loss(name, tenant) for name, tenant in state.tenants.items()])
        return float(self._losses.mean()) if len(self._losses) else 0.0

    def _loss(self, name: str, tenant: Tenant) -> float:
        return max(self._top[name] - tenant.best, 0.0)


def _outcome(
    decision: StartTrial, truth: Array, device: PoolDevice, world: World, now: float, rng: np.random.Generator
) -> TrialRecord:
    time = decision.reasons.cost * _luck(world, rng)
    return _ended(decision, time, float(truth[decision.index]), device, world, now, rng)


def _slice_outcome(
    decision: StartTrial,
    curves: CurveTable,
    row: int,
    belief: Belief,
    device: PoolDevice,
    world: World,
    now: float,
    rng: np.random.Generator,
) -> TrialRecord:
    """The cells of the curve decide; a trial that was stopped at a rung goes on from there."""
    rung = len(curves.rungs) - 1 if decision.slice is None else decision.slice.rung
    begun = int(belief.progress[decision.index]) if isinstance(belief, CurveBelief) else -1
    cost = curves.cost[row, decision.index]
    time = float(cost[rung] - (cost[begun] if begun >= 0 else 0.0))
    time *= _luck(world, rng) * float(world.seconds(device)[decision.index])
    return _ended(decision, time, float(curves.quality[row, decision.index, rung]), device, world, now, rng)


def _luck(world: World, rng: np.random.Generator) -> float:
    return float(np.exp(world.cost_noise * rng.standard_normal())) if world.cost_noise else 1.0


def _ended(
    decision: StartTrial,
    time: float,
    quality: float,
    device: PoolDevice,
    world: World,
    now: float,
    rng: np.random.Generator,
) -> TrialRecord:
    if world.failures and rng.uniform() < world.failures:
        quality = np.nan
    if time * device.price > decision.limit:
        time, quality = decision.limit / device.price, np.nan
    return TrialRecord(decision, now, now + time, quality, time * device.price)

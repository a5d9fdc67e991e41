"""When waiting jobs will start: the queue played forward many times, each job with its own spread, devices as they are.

Deciding only. The same rules as the live queue: claims by fair share, limits on active jobs, labels, memory and GPUs
by device, small jobs around a large one until it has waited too long.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from easel.declare.resources import Resources, Room
from easel.ids import JobId
from easel.records.queue import Line, Owner
from easel.run.placement import PATIENCE_S
from easel.run.share import Shares, load

Array = npt.NDArray[np.float64]
Places = list[tuple[str, tuple[int, ...]]]
"""Devices, and which of their GPUs."""
NEVER = math.inf
_NORMAL = NormalDist()
MOST_STEPS = 40_000
"""Jobs times plays: about a second of one core."""
MOST_PLAYS, LEAST_PLAYS = 200, 25


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds that a job takes on a device of speed 1: log-normal about `median`, with deviation `sd` of the logarithm.

    `median` itself is uncertain by `common` (a deviation of the logarithm too), alike for all jobs of one `group`:
    such errors add up over a long queue, where those of single jobs cancel out.
    """

    median: float
    sd: float = 0.0
    common: float = 0.0
    group: str = ""

    @property
    def whole_sd(self) -> float:
        """The deviation of the logarithm, what it has in common with others included."""
        return math.hypot(self.sd, self.common)

    def quantile(self, u: float) -> float:
        return float(self.median * math.exp(self.sd * _normal_quantile(u)))

    def beyond(self, elapsed: float, u: float) -> float:
        """The whole time of one that has run for `elapsed` already."""
        if self.sd <= 0.0 or elapsed <= 0.0:
            return max(self.quantile(u), elapsed)
        done = _normal_cdf(math.log(max(elapsed, 1e-9) / max(self.median, 1e-9)) / self.sd)
        if done >= 1.0 - 1e-9:
            # far beyond all that was expected: as long again as it has taken, give or take
            return elapsed * (1.0 + 0.5 * u)
        return max(self.quantile(done + (1.0 - done) * u), elapsed)


@dataclass(frozen=True, slots=True)
class ForecastDevice:
    """A device with what is free on it now; one that is reserved is `kept_for` a project. What takes a second on the
    reference device takes `1/speed` here."""

    name: str
    capacity: Room
    labels: Mapping[str, str] = field(default_factory=dict)
    kept_for: str | None = None
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds a device since `elapsed` seconds."""

    owner: Owner
    device: str
    asked: Resources
    spread: Spread
    elapsed: float = 0.0
    trial: bool = False
    """Whether it is one of an app, which starts another when it ends."""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits. One with `launched` has left its queue and waits for a device: it goes first.

    One that `arrives` later joins its owner's queue so many seconds from now.
    """

    job: JobId
    owner: Owner
    asked: Resources
    spread: Spread
    wants: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    waited: float = 0.0
    launched: bool = False
    trial: bool = False
    arrives: float = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """Seconds from now until a job starts and ends: samples over the plays, infinite where it never does."""

    start: Array
    end: Array

    def start_at(self, confidence: float) -> float:
        """Seconds within which it starts with that probability."""
        return float(np.quantile(self.start, confidence, method="higher"))

    def end_at(self, confidence: float) -> float:
        return float(np.quantile(self.end, confidence, method="higher"))


@dataclass(frozen=True)
class QueueNow:
    """Everything that decides when a job starts. `lines` say limits, weights and usage; their `waiting` is not read.

    `gap_s` passes between the end of a job and the start of the next in its place. `drift` is the deviation of the
    logarithm of what makes everything slower or faster alike, such as a machine that others use too.
    """

    devices: Sequence[ForecastDevice]
    running: Sequence[RunningJob]
    waiting: Sequence[WaitingJob]
    lines: Mapping[Owner, Line]
    gap_s: float = 0.0
    drift: float = 0.0
    for_apps: float = 0.0
    """The least share of the cores that is kept for trials of apps."""

    def plays(self) -> int:
        each = len(self.waiting) + len(self.running) + 1
        return int(min(MOST_PLAYS, max(LEAST_PLAYS, MOST_STEPS // each)))


def expected_starts(
    now: QueueNow, rng: np.random.Generator, plays: int | None = None
) -> dict[JobId, ExpectedStart]:
    """Returns the expected start of every waiting job."""
    count = plays or now.plays()
    starts = {job.job: np.full(count, NEVER) for job in now.waiting}
    ends = {job.job: np.full(count, NEVER) for job in now.waiting}
    for play in range(count):
        for job, (start, end) in _play(now, rng).items():
            starts[job][play], ends[job][play] = start, end
    return {job: ExpectedStart(starts[job], ends[job]) for job in starts}


def expected_start(
    now: QueueNow, new: WaitingJob, rng: np.random.Generator, plays: int | None = None
) -> ExpectedStart:
    """Returns the expected start of one more job, submitted now behind its owner's others."""
    more = replace(now, waiting=(*now.waiting, new))
    return expected_starts(more, rng, plays)[new.job]


class _Pool:
    """Devices while one play goes on."""

    def __init__(self, devices: Sequence[ForecastDevice]) -> None:
        self.devices = {device.name: device for device in devices}
        self.free = {device.name: device.capacity for device in devices}

    def place(self, job: WaitingJob) -> Places | None:
        """Devices for all of its members, or None."""
        found: Places = []
        for name, device in self.devices.items():
            if not _suits(device, job) or not self.free[name].fits(job.asked):
                continue
            gpus = self.free[name].choose_gpus(job.asked.gpus)
            assert gpus is not None
            found.append((name, gpus))
            if len(found) == job.workers:
                return found
        return None

    def speed(self, places: Places) -> float:
        """How fast the slowest of them is: for it the others wait."""
        return min(self.devices[name].speed for name, _ in places)

    def could(self, job: WaitingJob) -> bool:
        able = [d for d in self.devices.values() if _suits(d, job) and d.capacity.fits(job.asked)]
        return len(able) >= job.workers

    def take(self, asked: Resources, places: Places) -> None:
        for name, gpus in places:
            self.free[name] = self.free[name].less(asked, gpus)

    def give_back(self, asked: Resources, places: Places) -> None:
        for name, gpus in places:
            self.free[name] = self.free[name].plus(asked, gpus)


def _suits(device: ForecastDevice, job: WaitingJob) -> bool:
    """Whether it has the labels that the job wants and is not kept for another project."""
    wanted = all(device.labels.get(name) == value for name, value in job.wants.items())
    return wanted and device.kept_for in (None, job.owner[0])


def _play(now: QueueNow, rng: np.random.Generator) -> dict[JobId, tuple[float, float]]:
    """Plays once, with one draw for each job: when the waiting ones start and end."""
    play = _Play(now, rng)
    while True:
        play.start_launched()
        if not play.drains():
            play.start_queued()
        if not play.waits() or not play.advance():
            return play.found


class _Play:
    """The queue while it is played forward."""

    def __init__(self, now: QueueNow, rng: np.random.Generator) -> None:
        self.lines, self.rng, self.pool = now.lines, rng, _Pool(now.devices)
        self.at, self.gap_s = 0.0, now.gap_s
        self._drift = math.exp(now.drift * float(rng.standard_normal())) if now.drift > 0.0 else 1.0
        self._common: dict[str, float] = {}
        self.found: dict[JobId, tuple[float, float]] = {}
        self.active: dict[Owner, int] = {}
        self.shares = Shares.of(now.lines.values())
        self._ends: list[tuple[float, int, Owner, Resources, Places, bool]] = []
        self._number = 0
        self._kept = now.for_apps * sum(device.capacity.vcpu for device in now.devices)
        self._of_apps = 0.0
        for held in now.running:
            if held.device in self.pool.devices:
                speed = self.pool.devices[held.device].speed
                done = held.elapsed * speed
                left = (self._drawn(held.spread).beyond(done, float(rng.uniform())) - done) / speed
                gpus = self.pool.free[held.device].choose_gpus(held.asked.gpus) or ()
                self._hold(held.owner, held.asked, [(held.device, gpus)], max(left, 0.0), held.trial)
                self.active[held.owner] = self.active.get(held.owner, 0) + 1
        waiting = [job for job in now.waiting if self.pool.could(job)]
        self.launched = [job for job in waiting if job.launched]
        self.queued: dict[Owner, list[WaitingJob]] = {}
        self._arrivals = deque(
            sorted((job for job in waiting if job.arrives > 0.0), key=lambda job: job.arrives)
        )
        for job in waiting:
            if job.arrives > 0.0:
                continue
            if job.launched:
                self.active[job.owner] = self.active.get(job.owner, 0) + 1
            else:
                self.queued.setdefault(job.owner, []).append(job)

    def start_launched(self) -> None:
        """Starts those that left their queues first, in their order, small ones around a large one for a while."""
        for job in list(self.launched):
            places = self.pool.place(job)
            if places is not None:
                self.launched.remove(job)
                self._start(job, places)
            elif self._impatient(job):
                return

    def drains(self) -> bool:
        """Whether nobody may pass one that has waited for too long."""
        return any(self._impatient(job) for job in self.launched)

    def waits(self) -> bool:
        """Whether there is still somebody whose start is to be found."""
        return bool(self.launched or self._arrivals) or any(self.queued.values())

    def start_queued(self) -> None:
        """Trials of apps that have less than what is kept for them, then heads of queues that fit, the best claim
        first."""
        self._start_kept()
        while True:
            chosen = next((head for head in self._heads() if head[1] is not None), None)
            if chosen is None or chosen[1] is None:
                return
            job, places = chosen[0], chosen[1]
            self.queued[job.owner].pop(0)
            self.active[job.owner] = self.active.get(job.owner, 0) + 1
            seconds = self._start(job, places)
            self.shares.add(job.owner, load(job.asked) * seconds * job.workers)

    def _start_kept(self) -> None:
        for owner, waiting in self.queued.items():
            for job in [one for one in waiting if one.trial]:
                if self._of_apps >= self._kept:
                    return
                places = self.pool.place(job)
                if places is None or self.lines[owner].paused:
                    break
                waiting.remove(job)
                self.active[owner] = self.active.get(owner, 0) + 1
                self.shares.add(owner, load(job.asked) * self._start(job, places) * job.workers)

    def advance(self) -> bool:
        """Goes on to the next end or arrival; returns whether there was one.

        An app whose trial ends starts another in its place, as far as that is kept for apps and none of theirs waits.
        """
        if self._arrivals and (not self._ends or self._arrivals[0].arrives <= self._ends[0][0]):
            job = self._arrivals.popleft()
            self.at = max(self.at, job.arrives)
            self.queued.setdefault(job.owner, []).append(job)
            return True
        if not self._ends:
            return False
        self.at, _, owner, asked, places, trial = heapq.heappop(self._ends)
        if trial and self._of_apps - asked.vcpu < self._kept and not self._trial_waits():
            return True  # for as long as anybody can tell
        self.pool.give_back(asked, places)
        self.active[owner] -= 1
        self._of_apps -= asked.vcpu if trial else 0.0
        return True

    def _trial_waits(self) -> bool:
        return any(job.trial for jobs in (self.launched, *self.queued.values()) for job in jobs)

    def _heads(self) -> Iterator[tuple[WaitingJob, Places | None]]:
        open_lines = [
            self.lines[owner]
            for owner, jobs in self.queued.items()
            if jobs and not self.lines[owner].paused and self.active.get(owner, 0) < self.lines[owner].limit
        ]
        for line in sorted(
            open_lines, key=lambda line: (self.shares.claim(line), self.active.get(line.owner, 0))
        ):
            head = self.queued[line.owner][0]
            yield head, self.pool.place(head)

    def _impatient(self, job: WaitingJob) -> bool:
        return self.at + job.waited > PATIENCE_S

    def _start(self, job: WaitingJob, places: Places) -> float:
        drawn = self._drawn(job.spread).quantile(float(self.rng.uniform()))
        seconds = max(drawn / self.pool.speed(places), 1e-6)
        self._hold(job.owner, job.asked, places, self.at + seconds + self.gap_s, job.trial)
        self.found[job.job] = (self.at, self.at + seconds)
        return seconds

    def _drawn(self, spread: Spread) -> Spread:
        """The spread once what it has in common with others is drawn for this play."""
        shift = self._drift
        if spread.common > 0.0:
            if spread.group not in self._common:
                self._common[spread.group] = float(self.rng.standard_normal())
            shift *= math.exp(spread.common * self._common[spread.group])
        return spread if shift == 1.0 else Spread(spread.median * shift, spread.sd)

    def _hold(self, owner: Owner, asked: Resources, places: Places, until: float, trial: bool) -> None:
        self.pool.take(asked, places)
        self._number += 1
        self._of_apps += asked.vcpu if trial else 0.0
        heapq.heappush(self._ends, (until, self._number, owner, asked, places, trial))


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _normal_quantile(u: float) -> float:
    return _NORMAL.inv_cdf(min(max(u, 1e-9), 1.0 - 1e-9))

"""What is believed of an app's candidates before it has tried them: quality, seconds, memory.

`PromiseBook` has hand-set promises; the live pool's own is `learned_book.LearnedBook`, which falls back on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from easel.declare.resources import Resources
from easel.flow.apps.rungs import cost_alone, cost_until
from easel.match.candidate import Candidate
from easel.match.registry import is_network
from easel.match.scores import as_scores
from easel.match.summary import DataSummary
from easel.optimise.arrays import Array
from easel.price.expect import RunTimes, Took, WorkKind
from easel.records.tenant import PastTrial
from easel.schedule.prior import NOISE, Prior

PROMISE_SD, SIBLING_SD, FAMILY_SD = 0.15, 0.05, 0.08
"""How far an app's level, a family within it and a candidate within a family stray from their promise."""
START_S = 0.3
"""What starting a trial, fetching its examples and storing its model takes at least."""
REMEMBERED = 300
"""The newest trials say enough about a machine."""
LEAST_MB, NETWORK_MB, SPARE = 1024, 2048, 1.3
"""Memory that a trial is given at least, one that loads torch, and the share added to what was seen."""


GPU_SPEED, GPU_START_S = 25.0, 4.0
"""How many reference cores a GPU is thought to be worth to a network, and what beginning there takes, at first."""
LEAST_SHARE = 0.25
"""Of a GPU that a trial asks for; one whose examples take more memory, or that ran out of it, asks for more."""


class PriorBook(Protocol):
    """What was learned from past trials."""

    def prior(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        """Returns the belief about an app's candidates on such data; what the app itself found is left out."""
        ...

    def shared(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        """The same for data of any size: what all apps with such candidates have in common."""
        ...


Learn = Callable[[Sequence[PastTrial]], PriorBook]


class PromiseBook:
    """Mean: the candidates' promise, moved by how they did for other apps; covariance: level + family + own.

    Within an app a candidate's surprise is its score less its promise, both relative to the app's mean over what was
    tried there; a mean over n surprises counts n / (n + 3) for the candidate, and half of that for its family.
    """

    def __init__(self, past: Sequence[PastTrial]) -> None:
        latest: dict[tuple[str, str], dict[str, PastTrial]] = {}
        for one in past:
            if one.quality is not None and np.isfinite(one.quality) and one.share >= 1.0:
                latest.setdefault((one.app_id, one.metric), {})[one.candidate] = one
        self._own: dict[str, _Sums] = {}
        self._kin: dict[str, _Sums] = {}
        for (app, metric), tried in latest.items():
            if len(tried) < 2:
                continue
            scores = as_scores(metric, {name: one.quality or 0.0 for name, one in tried.items()})
            found = np.array(list(scores.values()))
            hoped = np.array([one.promise for one in tried.values()])
            surprises = (found - found.mean()) - (hoped - hoped.mean())
            for one, surprise in zip(tried.values(), surprises.tolist(), strict=True):
                self._own.setdefault(one.candidate, _Sums()).add(app, surprise)
                self._kin.setdefault(one.family, _Sums()).add(app, surprise)
        self._covs: dict[tuple[str, ...], Array] = {}

    def prior(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        mean = np.array([one.promise + self._moved(app, one) for one in candidates])
        return Prior(mean, self._cov(tuple(one.family for one in candidates)), NOISE, method="promise")

    def shared(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        return self.prior(app, candidates, summary)

    def _moved(self, app: str, candidate: Candidate) -> float:
        own = self._own.get(candidate.name, _NONE).without(app)
        if own[1]:
            return own[0] / (own[1] + 3.0)
        kin = self._kin.get(candidate.family, _NONE).without(app)
        return 0.5 * kin[0] / (kin[1] + 3.0)

    def _cov(self, families: tuple[str, ...]) -> Array:
        """One array for all apps with such candidates: thousands of apps share it."""
        if families not in self._covs:
            each, K = np.array(families), len(families)
            same = (each[:, None] == each[None, :]).astype(float)
            self._covs[families] = (
                PROMISE_SD**2 * np.ones((K, K)) + FAMILY_SD**2 * same + SIBLING_SD**2 * np.eye(K)
            )
        return self._covs[families]


class _Sums:
    """The sum and number of surprises, in all and of each app."""

    __slots__ = ("count", "of", "total")

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0
        self.of: dict[str, tuple[float, int]] = {}

    def add(self, app: str, surprise: float) -> None:
        self.total, self.count = self.total + surprise, self.count + 1
        total, count = self.of.get(app, (0.0, 0))
        self.of[app] = (total + surprise, count + 1)

    def without(self, app: str) -> tuple[float, int]:
        total, count = self.of.get(app, (0.0, 0))
        return self.total - total, self.count - count


_NONE = _Sums()


def with_spent_seconds(past: Sequence[PastTrial]) -> Iterator[tuple[PastTrial, float]]:
    """Each with the seconds of its trial from the first slice on."""
    so_far: dict[tuple[str, str], tuple[float, float]] = {}
    for one in past:
        share, spent = so_far.get((one.app_id, one.candidate), (1.0, 0.0))
        spent = one.seconds + (spent if share < 1.0 and one.share >= share else 0.0)
        so_far[one.app_id, one.candidate] = (one.share if one.quality is not None else 1.0, spent)
        yield one, spent


def with_whole_seconds(past: Sequence[PastTrial]) -> Iterator[tuple[PastTrial, float]]:
    """Each with what the whole trial takes, by what its slices took until there.

    Of one that trains anew every slice says it by itself; a small one is mostly the time to start, and tells by what
    factor the guess for it was wrong, and no more.
    """
    for one, spent in with_spent_seconds(past):
        alone = cost_alone(one.share, one.family)
        if alone is None:
            yield one, spent / cost_until(one.share)
        elif alone > 0.1:
            yield one, one.seconds / alone
        else:
            guess = max(one.guess_s, START_S)
            yield one, guess * one.seconds / (START_S + guess * alone)


class Costs:
    """How long candidates will take here and how much memory they need: their estimates, moved by past trials.

    The correction is a factor on the estimate that depends on a candidate's name and family only: it is worked out once
    for every name, however many apps have such a candidate.
    """

    def __init__(self, past: Sequence[PastTrial]) -> None:
        taken = [
            Took(WorkKind(p.candidate, p.family, max(p.guess_s, START_S)), max(seconds, START_S))
            for p, seconds in with_whole_seconds(past[-REMEMBERED:])
            if not p.kind and p.seconds > 0 and (p.quality is not None or seconds > p.guess_s)
        ]
        self._times = RunTimes(taken)
        there: dict[str, list[Took]] = {}
        self._halved: dict[tuple[str, str], int] = {}
        for p in past[-REMEMBERED:]:
            if p.kind and p.kind_s and p.quality is not None:
                took = Took(
                    WorkKind(p.candidate, p.family, gpu_guess(p.guess_s)),
                    p.kind_s / cost_until(p.share),
                )
                there.setdefault(p.kind, []).append(took)
            if p.halved:
                key = (p.app_id, p.candidate)
                self._halved[key] = self._halved.get(key, 0) + p.halved
        self._times_on = {kind: RunTimes(some) for kind, some in there.items()}
        self._peaks: dict[tuple[str, str], float] = {}
        for one in past:
            if one.peak_mb:
                key = (one.app_id, one.candidate)
                self._peaks[key] = max(self._peaks.get(key, 0.0), one.peak_mb)
        self._factors: dict[str, float] = {}

    def factor(self, name: str) -> float:
        """Returns by how much the candidate's first guess was wrong so far; of one that `seconds` was asked about."""
        return self._factors.get(name, 1.0)

    def seconds(self, candidates: Sequence[Candidate]) -> Array:
        """`(K,)` on the reference device."""
        for one in candidates:
            if one.name not in self._factors:
                self._factors[one.name] = self._times.median(WorkKind(one.name, one.family, 1.0))
        return np.array([max(c.cost_s, START_S) * self._factors[c.name] for c in candidates])

    def seconds_on(self, kind: str, candidates: Sequence[Candidate]) -> Array:
        """`(K,)` on a GPU of this kind: as a network's operations say, moved by what trials took there."""
        times = self._times_on.get(kind, _NO_TIMES)
        return np.array(
            [gpu_guess(c.cost_s) * times.median(WorkKind(c.name, c.family, 1.0)) for c in candidates]
        )

    def gpu_share(self, app: str, candidate: Candidate, summary: DataSummary) -> float:
        """Returns the share of a GPU that a trial asks for: twice as much for each time it had to halve its batches."""
        data_mb = summary.examples * max(summary.cells, 1) * 4 / 2**20
        share = LEAST_SHARE if data_mb < 2_000 else 0.5 if data_mb < 8_000 else 1.0
        return float(min(1.0, share * 2 ** self._halved.get((app, candidate.name), 0)))

    def needs(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> tuple[Resources, ...]:
        """One core each; memory guessed from the size of the data, and more where the app was seen to need it."""
        data_mb = summary.examples * max(summary.cells, 1) * 8 / 2**20
        return tuple(self._need(app, one, data_mb) for one in candidates)

    def _need(self, app: str, candidate: Candidate, data_mb: float) -> Resources:
        least = NETWORK_MB if is_network(candidate) else LEAST_MB
        seen = self._peaks.get((app, candidate.name), 0.0)
        return rounded(max(least, 512 + 8 * data_mb, SPARE * seen))


_NO_TIMES = RunTimes(())


def gpu_guess(cost_s: float) -> float:
    """Returns how long a trial of these reference seconds is thought to take on a GPU before one was seen there."""
    return GPU_START_S + cost_s / GPU_SPEED


def rounded(memory_mb: float) -> Resources:
    """Rounds memory up to steps of 256 MB, so that few kinds of trials are told apart."""
    return _of_size(256 * math.ceil(min(memory_mb, 2.0**24) / 256))


@cache
def _of_size(memory_mb: int) -> Resources:
    return Resources(1.0, memory_mb)

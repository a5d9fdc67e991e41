"""An app as the scheduler needs it: what was tried, what runs, under which terms. Values, made into a tenant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np

from easel.flow.apps.beliefs import Costs
from easel.flow.apps.curve_book import LEAST_SLICE_S, CurveBook, is_sliced
from easel.flow.apps.on_gpus import ByKind, OnGpus
from easel.flow.apps.ready import STILL_VALID
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.luck import prefers_mixture
from easel.match.scores import as_score, as_scores, is_relative
from easel.match.slices import can_stop
from easel.match.summary import DataSummary
from easel.price.bill import MICROS
from easel.price.book import PriceBook
from easel.records.app import App
from easel.records.tenant import Terms
from easel.schedule.state import Pull, Tenant
from easel.tenancy.source import Flight


@dataclass(frozen=True, slots=True)
class Result:
    """One trial, or a slice of one, that ended. `score` is the policy's when it was chosen; `bill_micros` what this app
    paid. `share` is how far the trial is with it, `seconds` what it took in time of the reference device, `luck` what a
    trial that combined others measured of it."""

    job_id: JobId
    candidate: str
    quality: float | None
    score: float
    examples: int
    bill_micros: int
    model_set: str | None
    share: float = 1.0
    seconds: float = 0.0
    luck: float | None = None


class ShareKey(NamedTuple):
    """Apps for which this is equal learn the same thing: a trial of one is a trial of all."""

    project_id: str
    program: str
    metric: str
    rates_inside: bool
    examples_key: str


@dataclass(frozen=True)
class Dossier:
    """`counted` examples are switched on and `off` are not.

    `running` holds how many examples each flight's trial was started on, `lacks` what it needs before it can learn.
    """

    app: App
    terms: Terms
    metric: str
    candidates: tuple[Candidate, ...]
    counted: int
    results: tuple[Result, ...] = ()
    flights: tuple[Flight, ...] = ()
    running: tuple[int, ...] = ()
    changed_at: datetime | None = None
    lacks: str | None = None
    off: int = 0

    @property
    def id(self) -> AppId:
        return self.app.id

    @property
    def summary(self) -> DataSummary:
        assert self.app.summary is not None
        return DataSummary(**self.app.summary)

    @property
    def key(self) -> ShareKey | AppId:
        """Returns what apps that share trials have in common; word vectors of one's own are shared with nobody."""
        app = self.app
        if app.examples_key is None or app.vectors is not None:
            return app.id
        return ShareKey(app.project_id, app.program, self.metric, app.rates_inside, app.examples_key)

    def counts(self, examples: int) -> bool:
        """Whether a result found on so many examples still says something."""
        return examples >= STILL_VALID * self.counted

    @cached_property
    def valid(self) -> Sequence[Result]:
        known = {one.name for one in self.candidates}
        return [one for one in self.results if self.counts(one.examples) and one.candidate in known]

    @cached_property
    def best(self) -> float | None:
        """The best quality in the app's own metric, of what may serve."""
        return max(
            (one.quality for one in self.valid if one.quality is not None and one.model_set is not None),
            default=None,
        )

    @property
    def shown(self) -> float | None:
        """The score that people are told of the best model: without the luck of the choice, where that is known."""
        mixed = [one for one in self.results if one.luck is not None and self.counts(one.examples)]
        if self.best is None or not mixed:
            return self.best
        last = mixed[-1]
        luck = last.luck or 0.0
        if last.quality is not None and last.model_set and prefers_mixture(last.quality, self.best, luck):
            return last.quality
        return self.best - luck

    @property
    def spent_micros(self) -> int:
        return sum(one.bill_micros for one in self.results)

    def faults(self, candidate: str) -> int:
        """How many slices of the candidate the platform lost."""
        return sum(one.candidate == candidate and one.share == 0.0 for one in self.valid)

    def begun(self, candidate: str) -> Result | None:
        """The last slice of a trial of the candidate that is not over, and from which it can be gone on with."""
        found = [one for one in self.valid if one.candidate == candidate and one.share > 0.0]
        last = found[-1] if found else None
        unfinished = last is not None and last.share < 1.0 and last.model_set is not None
        return last if unfinished else None

    def score_of(self, quality: float | None) -> float:
        """Returns the score of one result in a metric with a scale of its own; None for a trial that failed."""
        return math.nan if quality is None else as_score(self.metric, quality)

    @property
    def rescored(self) -> bool:
        """Whether a new result changes the scores of earlier ones."""
        return is_relative(self.metric)


def tenant_of(
    dossiers: Sequence[Dossier], curves: CurveBook, costs: Costs, book: PriceBook, now: float
) -> Tenant:
    """Apps that share their trials as one tenant: the first stands for all, their weights add up."""
    lead = dossiers[0]
    merged = merged_terms(dossiers, now)
    names = tuple(one.name for one in lead.candidates)
    place = {name: k for k, name in enumerate(names)}
    seconds = costs.seconds(lead.candidates)
    needs = costs.needs(lead.id, lead.candidates, lead.summary)
    valid = lead.valid
    scores = _scores(lead, valid)
    budget = math.inf if merged.budget_micros is None else merged.budget_micros / MICROS
    rates = None
    if merged.budget_micros is not None:
        rates = np.array([float(book.rate(need.vcpu, need.memory_mb)) / 3600.0 for need in needs])
    deadline = math.inf if merged.deadline is None else merged.deadline.timestamp()
    gpus = OnGpus(costs, lead.id, lead.candidates, lead.summary, seconds, needs, book)
    before, bills = _spending(dossiers, valid, now)
    fresh = Tenant(
        name=lead.id,
        candidates=names,
        belief=curves.belief(lead.id, lead.candidates, lead.summary),
        cost=seconds,
        weight=merged.weight,
        deadline=deadline,
        budget=budget,
        ceiling=1.0,
        cost_on=ByKind(gpus.times),
        needs=needs,
        needs_on=ByKind(gpus.needs_there),
        rates=rates,
        rates_on=ByKind(gpus.rates),
        packs_on=ByKind(gpus.packs),
        spent=before,
        least_slice=LEAST_SLICE_S,
        stops=np.array([can_stop(one) for one in lead.candidates], dtype=bool),
        project=lead.app.project_id,
    )
    sliced = is_sliced(seconds)
    pulls = [
        Pull(
            place[one.candidate],
            score,
            one.score,
            one.share,
            one.seconds if sliced or one.share < 1.0 else None,
        )
        for one, score in zip(valid, scores, strict=True)
    ]
    running = [flight.trial for flight in lead.flights if flight.trial.candidate in place]
    return fresh.resumed(pulls, bills, running, len(pulls) + len(running))


def _spending(dossiers: Sequence[Dossier], valid: Sequence[Result], now: float) -> tuple[float, list[float]]:
    """What was spent on results that no longer count, and on each that does; of apps together all at once."""
    if len(dossiers) > 1:
        return sum(one.spent_micros for one in willing(dossiers, now)) / MICROS, [0.0] * len(valid)
    counted = sum(one.bill_micros for one in valid)
    return (dossiers[0].spent_micros - counted) / MICROS, [one.bill_micros / MICROS for one in valid]


def _scores(lead: Dossier, valid: Sequence[Result]) -> list[float]:
    if not lead.rescored:
        return [lead.score_of(one.quality) for one in valid]
    known = {str(k): one.quality for k, one in enumerate(valid) if one.quality is not None}
    found = as_scores(lead.metric, known)
    return [found.get(str(k), math.nan) for k in range(len(valid))]


def is_willing(one: Dossier, now: float) -> bool:
    """Whether its own terms let it be served."""
    terms = one.terms
    return not (
        terms.paused_at is not None
        or (terms.deadline is not None and terms.deadline.timestamp() <= now)
        or (terms.until is not None and one.shown is not None and one.shown >= terms.until)
        or (terms.budget_micros is not None and one.spent_micros >= terms.budget_micros)
    )


def willing(dossiers: Sequence[Dossier], now: float) -> list[Dossier]:
    """Returns those of apps that share their trials who are served; all of them where nobody may be."""
    return [one for one in dossiers if is_willing(one, now)] or list(dossiers)


def merged_terms(dossiers: Sequence[Dossier], now: float) -> Terms:
    """Weights add up; a limit holds as far as it holds for everybody who is served."""
    some = willing(dossiers, now)
    if len(some) == 1:
        return replace(some[0].terms, served_at=dossiers[0].terms.served_at)
    deadlines = [one.terms.deadline for one in some]
    untils = [one.terms.until for one in some]
    budgets = [one.terms.budget_micros for one in some]
    return Terms(
        weight=sum(one.terms.weight for one in some),
        deadline=None if None in deadlines else max(d for d in deadlines if d is not None),
        budget_micros=None if None in budgets else sum(b for b in budgets if b is not None),
        until=None if None in untils else max(u for u in untils if u is not None),
        asked=any(one.terms.asked for one in some),
        paused_at=some[0].terms.paused_at if all(one.terms.paused_at for one in some) else None,
        paused_by=some[0].terms.paused_by,
        served_at=dossiers[0].terms.served_at,
    )

"""Priors of the live pool: what public data taught, what this installation's own trials teach, hand-set promises last.

Earlier sets and earlier apps are rows of one table of scores. The promises are the cold prior beside it: they rule
where nothing is known, and fade as rows come (`schedule/learn`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from easel.flow.apps.beliefs import PriorBook, PromiseBook
from easel.flow.experience.file import packaged_experience
from easel.match.candidate import Candidate
from easel.match.scores import as_scores, is_relative
from easel.match.summary import DataSummary
from easel.optimise.arrays import Array
from easel.records.tenant import PastTrial
from easel.schedule.experience import DataProperties, Experience, KnownSet
from easel.schedule.learn import LearnedPriors, learn_priors
from easel.schedule.prior import NOISE, Prior

MOST_APPS = 60
"""So many apps, the newest, teach: more would take longer and say little new."""
FEW_ROWS = 8
KNOWN_SHARE = 0.5
"""A public set counts where so much of the candidates was run on it."""
NEAREST = 45
"""So many public sets, those closest in rows, columns and classes, teach about an app (docs/results/experience.md)."""
STEP = np.log(4.0)
"""Sizes within about this factor count as the same: such apps share one fit."""


class LearnedBook:
    """A `PriorBook` from past trials and from experience; what it works out for one list of candidates is kept."""

    def __init__(self, past: Sequence[PastTrial], experience: Experience | None = None) -> None:
        self._experience = packaged_experience() if experience is None else experience
        self._promises: PriorBook = PromiseBook(())
        self._apps = _scores_by_app(past)
        self._public: dict[tuple[object, ...], Experience] = {}
        self._fits: dict[tuple[object, ...], LearnedPriors] = {}

    def prior(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        """Returns the belief about an app's candidates on such data.

        What the app found itself is left out while rows are few; one row among many may stay, so that all apps with
        the same candidates share one fit.
        """
        return self._fitted(app, candidates, summary).prior(size_properties(summary))

    def shared(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Prior:
        return self._fitted(app, candidates, summary).shared

    def _fitted(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> LearnedPriors:
        names = tuple(one.name for one in candidates)
        classes = summary.classes > 0
        steps = tuple(np.rint(size_properties(summary) / STEP).astype(int).tolist())
        public = self._known(names, steps, classes=classes)
        few = len(public.sets) + len(self._apps) < FEW_ROWS
        key = (app if few else "", public.sets, names, tuple(one.promise for one in candidates))
        if key not in self._fits:
            cold = self._promises.prior(app, candidates, summary)
            self._fits[key] = self._fit(public, names, cold, app if few else None)
        return self._fits[key]

    def _known(self, names: tuple[str, ...], steps: tuple[int, ...], *, classes: bool) -> Experience:
        if (classes, names) not in self._public:
            self._public[classes, names] = known_sets(self._experience, names, classes=classes)
        if (classes, names, steps) not in self._public:
            near = nearest_sets(self._public[classes, names], STEP * np.array(steps))
            self._public[classes, names, steps] = near
        return self._public[classes, names, steps]

    def _fit(
        self, public: Experience, names: tuple[str, ...], cold: Prior, without: str | None
    ) -> LearnedPriors:
        found = [[scores.get(name, np.nan) for name in names] for app, scores in self._apps if app != without]
        own = np.array(found).reshape(-1, len(names))
        own = own[(~np.isnan(own)).sum(1) >= 2][-MOST_APPS:]
        return _learned(public.sets, names, cold.mean.tobytes(), cold.cov.tobytes(), own.tobytes())


@lru_cache(maxsize=128)
def _learned(
    public: tuple[KnownSet, ...], names: tuple[str, ...], mean: bytes, cov: bytes, own: bytes
) -> LearnedPriors:
    """The fit to public sets and to the scores `own` of other apps, arrays given by their bytes.

    Kept for whoever has the same: apps that join, and a pool that is built anew from its records.
    """
    K = len(names)
    cold = Prior(np.frombuffer(mean), np.frombuffer(cov).reshape(K, K), NOISE)
    rows, table = np.frombuffer(own).reshape(-1, K), Experience(public).table(names)
    sizes = np.array([_sizes(one.properties) for one in public]).reshape(-1, 3)
    if len(sizes):
        # of what an earlier app was like nothing is on record: it counts as a typical set
        sizes = np.concatenate([sizes, np.tile(sizes.mean(0), (len(rows), 1))])
    scores = np.concatenate([table.quality, rows])
    cost = np.concatenate([table.cost, np.full_like(rows, np.nan)])
    return learn_priors(scores, cold, sizes if len(sizes) else None, cost)


def known_sets(experience: Experience, names: Sequence[str], *, classes: bool) -> Experience:
    """The public sets that are like such an app: classes or numbers as it has, and mostly the same candidates."""
    wanted = set(names)

    def alike(template: str) -> float:
        known = {name for one in experience.of(template).sets for name in one.outcomes}
        return len(known & wanted) / max(len(known | wanted), 1)

    kinds = {one.template for one in experience.sets if (one.properties.classes > 0) == classes}
    if not kinds:
        return Experience()
    best = max(sorted(kinds), key=alike)
    enough = (
        one
        for one in experience.of(best).sets
        if len(wanted & set(one.outcomes)) >= KNOWN_SHARE * max(len(wanted), 1)
    )
    return Experience(tuple(enough))


def nearest_sets(public: Experience, sizes: Array) -> Experience:
    """The `NEAREST` sets whose logarithmic `sizes` `(3,)`, each in units of its spread, are closest; in their order."""
    if len(public.sets) <= NEAREST:
        return public
    known = np.array([_sizes(one.properties) for one in public.sets])
    far = ((known - sizes) / np.maximum(known.std(0), 1e-6)) ** 2
    chosen = np.sort(np.argsort(far.sum(1), kind="stable")[:NEAREST])
    return Experience(tuple(public.sets[i] for i in chosen))


def size_properties(summary: DataSummary) -> Array:
    """`(3,)`: what an app's summary tells of the properties that public sets are known by."""
    return _sizes(DataProperties(summary.examples, summary.cells, summary.classes))


def _sizes(properties: DataProperties) -> Array:
    return properties.vector()[:3]


def _scores_by_app(past: Sequence[PastTrial]) -> list[tuple[str, dict[str, float]]]:
    """The latest score of every candidate, with its app; metrics without a scale of their own say nothing to others."""
    qualities: dict[tuple[str, str], dict[str, float]] = {}
    for one in past:
        whole = one.quality is not None and np.isfinite(one.quality) and one.share >= 1.0
        if whole and one.quality is not None and not is_relative(one.metric):
            key = (str(one.app_id), one.metric)
            # whoever has the newest result comes last
            found = qualities[key] = qualities.pop(key, {})
            found[one.candidate] = one.quality
    return [(app, as_scores(metric, found)) for (app, metric), found in qualities.items()]

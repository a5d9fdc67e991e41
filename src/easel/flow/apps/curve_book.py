"""What is believed of an app's trials slice by slice: final qualities as whole trials taught, and how curves climb.

An app whose candidates are all quick tries them whole: a slice would cost more to start than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from easel.flow.apps.beliefs import START_S, Costs, PriorBook, with_spent_seconds
from easel.flow.apps.rungs import cost_until, costs_until, rungs_for
from easel.match.candidate import Candidate
from easel.match.scores import as_scores, is_relative
from easel.match.summary import DataSummary
from easel.optimise.arrays import Array
from easel.records.tenant import PastTrial
from easel.schedule.curve_belief import CurvePrior, learn_curves
from easel.schedule.curves import CurveTable
from easel.schedule.scale import in_angles
from easel.schedule.state import Belief

WHOLE_BELOW_S = 8.0
"""An app of which no trial is thought to take longer tries them whole."""
LEAST_SLICE_S = 4.0
"""A slice goes on to the furthest rung that is no further away than this."""
FEWEST_ROWS, MOST_ROWS = 3, 60
"""Curves of so many apps teach others."""


class CurveBook:
    """Beliefs over learning curves; what is worked out for one list of candidates is kept for all apps with it."""

    def __init__(self, past: Sequence[PastTrial], priors: PriorBook, costs: Costs) -> None:
        self._priors, self._costs = priors, costs
        self._curves = _curves(past)
        self._shared: dict[tuple[object, ...], tuple[Array, CurvePrior]] = {}

    def belief(self, app: str, candidates: Sequence[Candidate], summary: DataSummary) -> Belief:
        prior = self._priors.prior(app, candidates, summary)
        seconds = self._costs.seconds(candidates)
        if not is_sliced(seconds):
            return prior.belief()
        shared = self._priors.shared(app, candidates, summary)
        higher = in_angles(prior).mean - in_angles(shared).mean
        names, rungs = tuple(one.name for one in candidates), rungs_for(summary.examples)
        key = (id(shared.cov), shared.mean.tobytes(), names, rungs)
        if key not in self._shared:
            # the array is kept with it, so that nothing else gets its id
            table = self._table(names, rungs)
            found = learn_curves(table, cost=np.ones(len(names)), final=shared)
            self._shared[key] = (shared.cov, found)
        until = np.array([costs_until(one.family, summary.examples) for one in candidates])
        usual = np.array([cost_until(rung) for rung in rungs])
        predicted = np.maximum(seconds[:, None] * until, START_S)
        return self._shared[key][1].moved(higher, np.log(predicted / usual)).belief()

    def _table(self, names: tuple[str, ...], rungs: tuple[float, ...]) -> CurveTable:
        """Rows of other apps: scores, and what they cost against what was predicted until there.

        As if every trial cost in proportion to how far it is: how a family's own cost grows is put back for each app.
        """
        wide, number = len(rungs), {share: k for k, share in enumerate(rungs)}
        wanted = {name: k for k, name in enumerate(names)}
        quality, cost = [], []
        for found in self._curves:
            if len(wanted.keys() & {name for name, _ in found}) < 2:
                continue
            q = np.full((2, len(names), wide), np.nan)
            for (name, rung), (score, spent) in found.items():
                if name in wanted and rung in number:
                    q[:, wanted[name], number[rung]] = score, spent / self._costs.factor(name)
            quality.append(q[0])
            cost.append(np.fmax.accumulate(q[1], axis=1) * np.where(np.isnan(q[1]), np.nan, 1.0))
        if len(quality) < FEWEST_ROWS:
            quality, cost = [], []
        shape = (-1, len(names), wide)
        tenants = tuple(str(k) for k in range(len(quality)))[-MOST_ROWS:]
        return CurveTable(
            tenants,
            names,
            np.array(rungs),
            np.array(quality[-MOST_ROWS:]).reshape(shape),
            np.array(cost[-MOST_ROWS:]).reshape(shape),
        )


def is_sliced(seconds: Array) -> bool:
    """Whether trials that take so long `(K,)` are run slice by slice."""
    return bool(len(seconds)) and float(seconds.max()) > WHOLE_BELOW_S


def _curves(past: Sequence[PastTrial]) -> list[dict[tuple[str, float], tuple[float, float]]]:
    """Returns for each app `(candidate, rung) → (score, seconds until there for one of the first guess)`, newest last.

    Only apps of which a part of a trial is known, in metrics that have a scale of their own. Seconds are told as if
    the candidate's family cost in proportion to how far a trial is.
    """
    found: dict[tuple[str, str], dict[tuple[str, float], tuple[float, float]]] = {}
    parts: set[tuple[str, str]] = set()
    for one, spent in with_spent_seconds(past):
        if one.quality is None or not np.isfinite(one.quality) or is_relative(one.metric):
            continue
        rung = max((r for r in rungs_for(one.examples) if r <= one.share * (1.0 + 1e-9)), default=None)
        if rung is None:
            continue
        key = (str(one.app_id), one.metric)
        curves = found[key] = found.pop(key, {})
        score = as_scores(one.metric, {one.candidate: one.quality})[one.candidate]
        expected = max(one.guess_s * cost_until(rung, one.family, one.examples), START_S)
        curves[one.candidate, rung] = (score, max(spent, 1e-3) / expected * cost_until(rung))
        if one.share < 1.0:
            parts.add(key)
    return [curves for key, curves in found.items() if key in parts]

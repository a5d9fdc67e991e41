"""How much to hope: the upper side of a prior, as wide as serves tenants of the past best.

A model of qualities is wrong in its tails, and what it promises of the best of many candidates is a matter of tails. So
earlier tenants are served once more, each under the prior and alone, with the upper side narrower or wider; what left
the least area under the loss is kept, unless as it is does as well within the error of the comparison.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from easel.optimise.arcsine import to_quality
from easel.optimise.arrays import Array
from easel.optimise.finite import FiniteGP
from easel.schedule.learned_belief import LearnedBelief
from easel.schedule.prior import Prior

FACTORS = (1.2, 1.0, 0.8, 0.65, 0.5, 0.4, 0.3)
MOST_ROWS, MOST_TRIALS = 40, 30
SHARE = 0.15
"""Of the cost of all candidates: so long are the earlier tenants served."""
LEAST_ROWS = 5
ERRORS = 0.5
"""By so many standard errors a factor must be better than one that is closer to 1."""


def tuned(prior: Prior, rows: Array, cost: Array) -> Prior:
    """`prior` with the factor on its upside that serves the tenants `rows` best.

    `rows` `(n, K)` are whole and on the prior's own scale (angles where it is of angles), `cost` `(n, K)`.
    """
    n, K = rows.shape
    if n < LEAST_ROWS or K < 2:
        return prior
    chosen = np.random.default_rng(1).permutation(n)[:MOST_ROWS]
    upside = np.ones(K) if prior.upside is None else prior.upside
    areas = np.array([[_area(prior, upside * f, rows, cost, i) for i in chosen] for f in FACTORS])
    return replace(prior, upside=upside * _steady(areas))


def _steady(areas: Array) -> float:
    """The factor closest to 1 that is within the error of the best; `areas` `(factors, rows)`."""
    best = areas[int(areas.mean(1).argmin())]
    for place in sorted(range(len(FACTORS)), key=lambda j: abs(np.log(FACTORS[j]))):
        gap = areas[place] - best
        if gap.mean() <= ERRORS * gap.std(ddof=1) / np.sqrt(len(gap)) + 1e-12:
            return FACTORS[place]
    return 1.0


def _area(prior: Prior, upside: Array, rows: Array, cost: Array, i: int) -> float:
    """The mean loss of tenant `i`, served alone by gain per cost, its own row taken out of the mean."""
    mean = prior.mean + (prior.mean - rows[i]) / max(len(rows) - 1, 1)
    belief = LearnedBelief(FiniteGP.prior(mean, prior.cov, prior.noise, prior.dof), upside, prior.arcsine)
    quality = to_quality(rows[i]) if prior.arcsine else rows[i]
    usable = np.isfinite(cost[i]) & (cost[i] > 0)
    typical = float(np.median(cost[i][usable])) if usable.any() else 1.0
    price = np.where(usable, cost[i], typical)
    left = SHARE * float(price.sum())
    whole, area, best, top = left, 0.0, 0.0, float(quality.max())
    open_ = np.ones(len(price), dtype=bool)
    for _ in range(min(MOST_TRIALS, len(price) - 1)):
        rates = np.where(open_, np.maximum(belief.gain(best, 1.0), 1e-15) / price, -1.0)
        k = int(rates.argmax())
        area += (top - best) * min(float(price[k]), left)
        left -= float(price[k])
        best, open_[k] = max(best, float(quality[k])), False
        if left <= 0.0:
            break
        belief = belief.observed(k, float(quality[k]))
    return (area + (top - best) * max(left, 0.0)) / whole

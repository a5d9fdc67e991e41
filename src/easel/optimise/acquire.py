"""Acquisition functions, elementwise over arrays of means and deviations; larger quality is better.

`m`, `s` and `best` broadcast against each other; NumPy or torch. A deviation of zero is ordinary: the limit
is taken. Costs that are zero, infinite or NaN are read by `usable_cost`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from easel.optimise.arrays import arrays, namespace, normal_cdf, normal_pdf

TINY = 1e-12


def tau(u: Any) -> Any:
    """`τ(u) = uΦ(u) + φ(u)`, the expected positive part of `N(u, 1)`; never negative."""
    return (u * normal_cdf(u) + normal_pdf(u)).clip(min=0.0)


def expected_improvement(m: Any, s: Any, best: Any) -> Any:
    """`EI = s·τ((m − best)/s)`; `max(m − best, 0)` where `s = 0`."""
    m, s, best = arrays(m, s, best)
    xp = namespace(m, s)
    sure = s <= TINY
    width = xp.where(sure, s * 0.0 + 1.0, s)
    gain = m - best
    return xp.where(sure, gain.clip(min=0.0), s * tau(gain / width))


def probability_of_improvement(m: Any, s: Any, best: Any) -> Any:
    """`P(f > best) = Φ((m − best)/s)`; 0 or 1 where `s = 0`."""
    return probability_above(m, s, best)


def probability_above(m: Any, s: Any, limit: Any) -> Any:
    """`P(f > limit)`."""
    m, s, limit = arrays(m, s, limit)
    xp = namespace(m, s)
    sure = s <= TINY
    width = xp.where(sure, s * 0.0 + 1.0, s)
    gain = m - limit
    certain = (gain > 0) * (s * 0.0 + 1.0)
    return xp.where(sure, certain, normal_cdf(gain / width))


def probability_below(m: Any, s: Any, limit: Any) -> Any:
    """`P(f ≤ limit)`."""
    return 1.0 - probability_above(m, s, limit)


def upper_confidence_bound(m: Any, s: Any, beta: Any) -> Any:
    """`m + √β s`; with `β_t/c` in place of `β_t` this is ease.ml's cost-aware GP-UCB (§4.1)."""
    m, s, beta = arrays(m, s, beta)
    xp = namespace(m, s, beta)
    return m + xp.sqrt(beta) * s


def ucb_beta(arms: Any, t: Any, delta: float = 0.1) -> Any:
    """`β_t = log(K t²/δ)`, at least zero: `arms` is `K`, `t` the number of pulls, from 1."""
    return np.maximum(np.log(np.maximum(arms, 1) * np.maximum(t, 1) ** 2 / delta), 0.0)


def constrained_expected_improvement(m: Any, s: Any, best: Any, *probabilities: Any) -> Any:
    """`EI_c = EI · Π P(constraint holds)`, the constraints independent given the data."""
    value = expected_improvement(m, s, best)
    for p in probabilities:
        value = value * p
    return value


def per_cost(value: Any, cost: Any) -> Any:
    """`value / cost` with every cost made usable: EI per second, EI_c per dollar, the EI rate."""
    return value / usable_cost(cost)


def usable_cost(cost: Any, typical: float = 1.0) -> Any:
    """Costs that can be divided by.

    Zero or negative means "free": a billionth of the typical cost, so that it is taken first but does not
    blow up. NaN means "unknown": the typical cost. Infinite stays infinite: a value per cost of zero.
    """
    (cost,) = arrays(cost)
    xp = namespace(cost)
    known = xp.where(xp.isnan(cost), xp.full_like(cost, typical), cost)
    return known.clip(min=1e-9 * typical)

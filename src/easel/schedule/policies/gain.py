"""What a trial is expected to bring a tenant, and what a cheap look at part of the data is worth."""

from __future__ import annotations

import numpy as np

from easel.optimise.acquire import expected_improvement
from easel.optimise.arrays import Array
from easel.schedule.learned_belief import LearnedBelief
from easel.schedule.state import Belief, Look, Tenant

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LEAST = 1e-15
"""A gain of exactly zero would leave the order among hopeless candidates to chance: cheapest first then."""


def gain_below(m: Array, s: Array, best: float, ceiling: float) -> Array:
    """`E[(min(f, ceiling) − best)⁺]`: no hope is placed above the highest quality there can be.

    `m`, `s` `(..., K)`; expected improvement over `best` less that over `ceiling`.
    """
    gain = expected_improvement(m, s, best)
    if ceiling < np.inf:
        gain = gain - expected_improvement(m, s, max(ceiling, best))
    return np.asarray(gain.clip(min=LEAST))


def expected_gain(belief: Belief, best: float, ceiling: float) -> Array:
    """`(K,)` `E[(min(f, ceiling) − best)⁺]` under `belief`, in quality."""
    if isinstance(belief, LearnedBelief):
        return np.asarray(belief.gain(best, ceiling).clip(min=LEAST))
    return gain_below(belief.mean, belief.sd, best, ceiling)


def pending(tenant: Tenant) -> tuple[Belief, float]:
    """Belief and bar once the running trials are in, as expected: each raises the bar by what it promises."""
    belief, best = tenant.belief, tenant.best
    for trial in tenant.running:
        k = trial.index
        best = best + float(expected_gain(belief, best, tenant.ceiling)[k])
        belief = belief.believed(k)
    return belief, best


def look_rates(tenant: Tenant, belief: Belief, best: float, costs: Array, look: Look, rate: float) -> Array:
    """`(K,)` gain per cost of looking first and running in full only if it then still pays.

    The look costs `a = look.cost · c` and has noise variance `look.noise`, so the mean afterwards is
    `m' ~ N(m, s⁴/(s² + noise))` with deviation `s' = s √(noise/(s² + noise))`. The full run follows where its
    gain exceeds `rate · c`, what the tenant's best other trial would bring for the same money. The rate is
    `E[gain'; follow] / (a + P(follow) c)`, by five Gauss–Hermite nodes.
    """
    s2 = belief.sd**2
    total = np.maximum(s2 + look.noise, 1e-18)
    after = np.sqrt(s2 * look.noise / total)
    means = belief.mean[None, :] + NODES[:, None] * (s2 / np.sqrt(total))[None, :]
    gains = gain_below(means, np.broadcast_to(after, means.shape), best, tenant.ceiling)
    follow = gains > rate * costs[None, :]
    brought = WEIGHTS @ np.where(follow, gains, 0.0)
    spent = look.cost * costs + (WEIGHTS @ follow) * costs
    looked = {p.candidate for p in tenant.pulls if p.fraction == look.fraction}
    rates = brought / spent
    rates[list(looked)] = -np.inf
    return np.asarray(rates)

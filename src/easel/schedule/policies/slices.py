"""What the next slice of a tenant is worth: each of its curves extrapolated, the best per cost taken one rung on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from easel.optimise.arrays import Array
from easel.schedule.curve_belief import CurveBelief, unwarped
from easel.schedule.state import PoolDevice, PoolState, Tenant

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LEAST = 1e-15
"""A gain of exactly zero would leave the order among hopeless slices to chance: cheapest first then."""


class SliceOffer(NamedTuple):
    """Continue (or begin) candidate number `candidate` to `rung`: `rate` is gain per cost, `cost` that slice's own."""

    candidate: int
    rung: int
    rate: float
    cost: float


def curve_gain(m: Array, s: Array, best: float) -> Array:
    """`E[(sin²w − best)⁺]` for `w ~ N(m, s²)`: the gain in raw quality, by Gauss–Hermite nodes."""
    above = unwarped(m[..., None] + s[..., None] * NODES) - best
    return np.asarray((above.clip(min=0.0) @ WEIGHTS).clip(min=LEAST))


def best_slice(tenant: Tenant, state: PoolState) -> SliceOffer | None:
    """The slice that promises most, or None where nothing may run.

    A candidate's promise is the largest, over all rungs ahead, of the expected gain there per cost until there; only
    its next rung is run (further where a slice would be shorter than the tenant's least), and then everybody is weighed
    anew. Slices that run now raise the bar by their expected
    gain, and their cells count as known.
    """
    belief = tenant.belief
    assert isinstance(belief, CurveBelief)
    device = state.device
    scale = device_scale(tenant, belief, device)
    ahead = device.interruptions.stretched(belief.costs_ahead() * scale[:, None])
    now, best = belief, tenant.best
    for trial in tenant.running:
        # by the share: rungs change with the number of examples
        rung = belief.last if trial.slice is None else max(belief.rung_at(trial.slice.share), 0)
        m, s = now.cells()
        k = trial.index
        best += float(curve_gain(m[k : k + 1, rung], s[k : k + 1, rung], best)[0])
        now = now.expected(k, rung)
    m, s = now.cells()
    rates = np.where(np.isfinite(ahead), curve_gain(m, s, best) / ahead, -np.inf)
    following = np.minimum(belief.progress + 1, belief.last)
    if tenant.least_slice > 0.0:
        # the furthest rung that is not too far for one slice
        near = np.where(np.isfinite(ahead), ahead <= tenant.least_slice, False)
        furthest = near.shape[1] - 1 - near[:, ::-1].argmax(1)
        following = np.where(near.any(1), np.maximum(following, furthest), following)
    next_cost = ahead[np.arange(len(following)), following]
    mask = tenant.may_run(device, state.now, next_cost)
    if not mask.any():
        return None
    per_candidate = np.where(mask, rates.max(1), -np.inf)
    k = int(per_candidate.argmax())
    return SliceOffer(k, int(following[k]), float(per_candidate[k]), float(next_cost[k]))


def device_scale(tenant: Tenant, belief: CurveBelief, device: PoolDevice) -> Array:
    """`(K,)`: seconds on `device` for a second on the reference device."""
    if device.kind in tenant.cost_on:
        with np.errstate(divide="ignore", invalid="ignore"):
            known = tenant.cost_on[device.kind] / tenant.cost
        return np.where(np.isfinite(known) & (known > 0), known, np.where(np.isposinf(known), np.inf, 1.0))
    return np.full(belief.shape[0], 1.0 / device.speed)

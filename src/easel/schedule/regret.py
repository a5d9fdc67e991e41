"""MM-GP-EI's regret, its maximum incremental uncertainty (MIU) and its bound, beside what a run came to (§3.2, §5).

The bound holds up to a constant that the paper leaves open; what it tells is how regret grows with tenants, devices
and the independence of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array
from easel.optimise.covariance import FLOOR
from easel.schedule.prior import Prior
from easel.schedule.simulate import Run, World


@dataclass(frozen=True)
class RegretReport:
    """`measured` is `Σ_i ∫ (z_i* − z_i*(t)) dt` over the horizon, `bound` is `(MIU + M) N²/M · c̄`, constants aside."""

    measured: float
    uncertainty: float
    bound: float


def incremental_uncertainties(cov: Array) -> Array:
    """`(K,)`: `MIU_s` of `cov` `(K, K)` for `s = 1..K`, the deviation that one more candidate adds to `s − 1` others.

    The exact maximum runs over all subsets; here each candidate is followed greedily, the others joining in the order
    in which they tell least about it, which can only be too small.
    """
    K = len(cov)
    found = np.zeros(K)
    for x in range(K):
        S = np.array(cov, dtype=float)
        rest = [k for k in range(K) if k != x]
        found[0] = max(found[0], np.sqrt(max(S[x, x], 0.0)))
        for s in range(1, K):
            told = [S[x, k] ** 2 / max(S[k, k], FLOOR) for k in rest]
            k = rest.pop(int(np.argmin(told)))
            S = S - np.outer(S[:, k], S[k]) / max(S[k, k], FLOOR)
            found[s] = max(found[s], np.sqrt(max(S[x, x], 0.0)))
    return found


def total_uncertainty(priors: Mapping[str, Prior], observed: int) -> float:
    """`MIU(T, K) = Σ_{s=2}^{observed} MIU_s` over all candidates of all tenants, who are independent of each other.

    As long as another tenant's candidates can make up the `s − 1`, nothing is told about the widest candidate and
    `MIU_s` is its own deviation; beyond that its own tenant's have to join.
    """
    widest = max(priors.values(), key=lambda prior: float(np.diag(prior.cov).max()))
    others = sum(len(prior.mean) for prior in priors.values()) - len(widest.mean)
    free = min(max(observed - 1, 0), others)
    total = free * float(np.sqrt(np.diag(widest.cov).max()))
    left = min(max(observed - 1 - free, 0), len(widest.mean) - 1)
    if left:
        total += float(incremental_uncertainties(widest.cov)[1 : left + 1].sum())
    return total


def regret_report(world: World, run: Run, priors: Mapping[str, Prior], horizon: float) -> RegretReport:
    """What the run came to, and what the theorem allows."""
    N, M = len(world.table.tenants), len(world.devices)
    ended = sum(step.ended <= horizon for step in run.steps)
    uncertainty = total_uncertainty(priors, ended)
    cost = np.ones(1) if world.unit_cost else world.table.cost[np.isfinite(world.table.cost)]
    bound = (uncertainty + M) * N**2 / M * float(cost.mean())
    return RegretReport(N * horizon * run.curve.area(horizon), uncertainty, bound)

"""Which tenant: first come, random, round robin, GREEDY and HYBRID (ease.ml §5), the largest score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.schedule.policies.board import BestCandidate
from easel.schedule.policies.compose import Ranking
from easel.schedule.state import Mask, PoolState, Tenant


class FirstCome:
    """Whoever came first, until nothing of theirs is left."""

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        return Ranking(-np.arange(len(offers), dtype=float), "first come, first served")


@dataclass(frozen=True)
class RandomTenant:
    """Uniform over tenants; the draw is a function of the seed and of the number of starts so far."""

    seed: int = 0

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        rng = np.random.default_rng([self.seed, state.step])
        return Ranking(rng.permutation(len(offers)).astype(float), "random tenant")


class RoundRobin:
    """Whoever was served longest ago."""

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        return Ranking(np.array([-float(o.tenant.served_at) for o in offers]), "round robin")


class LargestScore:
    """MM-GP-EI: the best candidate of all tenants' candidates."""

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        return Ranking(np.array([o.score for o in offers]), "largest over all tenants")


def empirical_gap(tenant: Tenant) -> float:
    """`σ̃` of algorithm 2, line 6, folded over the tenant's finished trials; infinite before the first.

    With `B` the bound when chosen and `y` the observation: `bound ← min(bound, B)`, `σ̃ = bound − y`,
    `bound ← min(bound, y + σ̃)`. A failed trial leaves it as it was.
    """
    if "gap" not in tenant.memo:
        bound, gap = np.inf, np.inf
        for pull in tenant.pulls:
            if np.isfinite(pull.quality):
                bound = min(bound, pull.bound)
                gap = bound - pull.quality
                bound = min(bound, pull.quality + gap)
        tenant.memo["gap"] = gap
    return float(tenant.memo["gap"])


def candidate_set(offers: Sequence[BestCandidate]) -> Mask:
    """`V = {i : σ̃_i ≥ mean σ̃}` as a mask; everybody while some gap is still infinite."""
    gaps = np.array([empirical_gap(o.tenant) for o in offers])
    if not np.isfinite(gaps).all():
        return np.asarray(np.isinf(gaps))
    # the mean of equal numbers may come out above each of them
    return np.asarray(gaps >= gaps.mean() - 1e-12)


class Greedy:
    """Algorithm 2: everybody once; then, of the tenants whose gap is above average, the largest potential."""

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        unserved = np.array([o.tenant.starts == 0 for o in offers])
        if unserved.any():
            return Ranking(np.where(unserved, 1.0, 0.0), "greedy: everybody once")
        potential = np.array([o.score - o.tenant.best for o in offers])
        return Ranking(np.where(candidate_set(offers), potential, -np.inf), "greedy")


@dataclass(frozen=True)
class Hybrid:
    """GREEDY until it freezes: `patience` decisions in which neither `V` nor the total quality moved.

    Then round robin for good, until a tenant joins, leaves or feeds (the pool then forgets the memory).
    The memory is (how long frozen, the set `V`, the total quality).
    """

    patience: int = 10

    def rank(self, state: PoolState, offers: Sequence[BestCandidate]) -> Ranking:
        frozen, last_set, last_total = state.memory if len(state.memory) == 3 else (0, None, -np.inf)
        assert isinstance(frozen, int)
        assert isinstance(last_total, float)
        if frozen >= self.patience:
            ranking = RoundRobin().rank(state, offers)
            return ranking._replace(rule="hybrid: frozen, so round robin", memory=state.memory)
        chosen = frozenset(
            o.tenant.name for o, within in zip(offers, candidate_set(offers), strict=True) if within
        )
        total = float(sum(t.best for t in state.tenants.values()))
        still = chosen == last_set and total <= last_total + 1e-12
        memory = (frozen + 1 if still else 0, chosen, total)
        return Greedy().rank(state, offers)._replace(memory=memory)

"""Apps as the scheduler sees them: candidates become a tenant, trials become observations, policies decide.

Pure: apps and their trials in, a decision out; whoever calls it starts the trial and stores the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from easel.match.candidate import Candidate
from easel.records.decision import StartTrial
from easel.schedule.prior import NOISE, Prior
from easel.schedule.state import Device, PoolState, Tenant

PROMISE_SD, SIBLING_SD, FAMILY_SD = 0.15, 0.05, 0.08
"""How far an app's level, a family within it and a candidate within a family stray from their promise."""


@dataclass(frozen=True)
class Played:
    """A decision that was acted on: its quality (NaN: failed, None: still running) and the seconds it took."""

    trial: StartTrial
    quality: float | None
    seconds: float = 0.0


@dataclass(frozen=True)
class Visit:
    """A turn that somebody beside the apps had: it counts for everybody's waiting time."""

    who: str


def prior_of(candidates: Sequence[Candidate], earlier: Sequence[Mapping[str, float]] = ()) -> Prior:
    """Mean: the candidates' promise, moved by how they did for earlier apps; covariance: level + family + own.

    `earlier` maps candidate names to qualities, one mapping for each app. A candidate's mean moves towards its
    mean advantage over its app's average, with the weight n / (n + 3).
    """
    mean = np.array([candidate.promise for candidate in candidates])
    gain: list[list[float]] = [[] for _ in candidates]
    for qualities in earlier:
        if len(qualities) < 2:
            continue
        level = float(np.mean(list(qualities.values())))
        for k, candidate in enumerate(candidates):
            if candidate.name in qualities:
                gain[k].append(qualities[candidate.name] - level)
    for k, found in enumerate(gain):
        if found:
            share = len(found) / (len(found) + 3.0)
            mean[k] = (1 - share) * mean[k] + share * (float(mean.mean()) + float(np.mean(found)))
    families = np.array([candidate.family for candidate in candidates])
    same = (families[:, None] == families[None, :]).astype(float)
    K = len(candidates)
    cov = PROMISE_SD**2 * np.ones((K, K)) + FAMILY_SD**2 * same + SIBLING_SD**2 * np.eye(K)
    return Prior(mean, cov, NOISE, method="promise")


def tenant_of(
    app: str,
    candidates: Sequence[Candidate],
    earlier: Sequence[Mapping[str, float]] = (),
    weight: float = 1.0,
) -> Tenant:
    """An app that joins the pool."""
    return Tenant(
        name=app,
        candidates=tuple(candidate.name for candidate in candidates),
        belief=prior_of(candidates, earlier).belief(),
        cost=np.array([candidate.cost_s for candidate in candidates]),
        weight=weight,
    )


def replay(
    tenants: Sequence[Tenant], history: Sequence[Played | Visit], device: Device, now: float
) -> PoolState:
    """The pool as it stands: every tenant joined, every stored decision started and, where it ended, finished.

    State is never kept beside the database: a controller that starts anew replays the decisions it finds.
    """
    state = PoolState({}, device)
    for tenant in tenants:
        state = state.joined(tenant)
    known = {tenant.name for tenant in tenants}
    for played in history:
        if isinstance(played, Visit):
            state = replace(state, step=state.step + 1)
            continue
        if played.trial.tenant not in known:
            continue
        state = state.started(played.trial)
        if played.quality is not None:
            state = state.finished(played.trial, played.quality, played.seconds)
    return state.on(device, now)

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


def as_scores(metric: str, qualities: Mapping[str, float]) -> dict[str, float]:
    """Qualities of one app in any metric → [0, 1], 1 for what cannot be bettered: what policies compare.

    Errors have no scale of their own: half a point is the app's median error, so that they are comparable
    within the app, which is all that its belief needs.
    """
    if metric == "psnr":
        return {name: min(max(q / 50.0, 0.0), 1.0) for name, q in qualities.items()}
    if metric == "negative_log_loss":
        return {name: float(np.exp(min(q, 0.0))) for name, q in qualities.items()}
    if metric.startswith("negative_"):
        typical = max(float(np.median([-q for q in qualities.values()])), 1e-12) if qualities else 1.0
        return {name: 1.0 / (1.0 + max(-q, 0.0) / typical) for name, q in qualities.items()}
    return {name: min(max(q, 0.0), 1.0) for name, q in qualities.items()}


def prior_of(candidates: Sequence[Candidate], earlier: Sequence[Mapping[str, float]] = ()) -> Prior:
    """Mean: the candidates' promise, moved by how they did for earlier apps; covariance: level + family + own.

    `earlier` maps candidate names to scores, one mapping for each app. Within an app a candidate's surprise is
    its score less its promise, both relative to the app's mean over what was tried there; a mean over n
    surprises counts n / (n + 3) for the candidate, and half of that for others of its family.
    """
    promise = np.array([candidate.promise for candidate in candidates])
    place = {candidate.name: k for k, candidate in enumerate(candidates)}
    surprises: list[list[float]] = [[] for _ in candidates]
    of_family: dict[str, list[float]] = {}
    for scores in earlier:
        common = [name for name in scores if name in place]
        if len(common) < 2:
            continue
        found = np.array([scores[name] for name in common])
        hoped = promise[[place[name] for name in common]]
        for name, surprise in zip(common, (found - found.mean()) - (hoped - hoped.mean()), strict=True):
            surprises[place[name]].append(float(surprise))
            of_family.setdefault(candidates[place[name]].family, []).append(float(surprise))
    mean = promise.copy()
    for k, candidate in enumerate(candidates):
        own, kin = surprises[k], of_family.get(candidate.family, [])
        mean[k] += _shrunk(own) if own else 0.5 * _shrunk(kin)
    families = np.array([candidate.family for candidate in candidates])
    same = (families[:, None] == families[None, :]).astype(float)
    K = len(candidates)
    cov = PROMISE_SD**2 * np.ones((K, K)) + FAMILY_SD**2 * same + SIBLING_SD**2 * np.eye(K)
    return Prior(mean, cov, NOISE, method="promise")


def _shrunk(found: Sequence[float]) -> float:
    return sum(found) / (len(found) + 3.0)


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
        ceiling=1.0,
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

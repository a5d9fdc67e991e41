"""What a policy decided, with its reasons: enough to answer "why is my app waiting?"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from easel.records.packing import PackPlace


@dataclass(frozen=True)
class RunnerUp:
    """The best that another tenant had to offer."""

    tenant: str
    candidate: str
    acquisition: float


@dataclass(frozen=True)
class Reasons:
    """`rule` names what fired; `acquisition` is in that rule's own unit (EI per cost, UCB, gap).

    `mean` and `deviation` are the posterior of the candidate's quality at the moment of the decision, `cost`
    its predicted cost on the device, `best_so_far` the tenant's best quality (its baseline before any).
    """

    rule: str
    mean: float
    deviation: float
    acquisition: float
    cost: float
    best_so_far: float
    runner_up: RunnerUp | None = None

    def numbers(self) -> str:
        """What was weighed, in one line, for those who want the numbers; people are told in plain words."""
        text = (
            f"{self.rule}: expects quality {self.mean:.3f} ± {self.deviation:.3f} (best so far "
            f"{self.best_so_far:.3f}) at cost {self.cost:.3g}; scores {self.acquisition:.3g}"
        )
        other = self.runner_up
        if other is None:
            return f"{text}; nobody else has anything to run"
        if other.acquisition > self.acquisition:
            more = f"{other.candidate} of {other.tenant} scores more ({other.acquisition:.3g})"
            return f"{text}; {more}, but not only the score counts"
        return f"{text}; next best is {other.candidate} of {other.tenant} with {other.acquisition:.3g}"


@dataclass(frozen=True)
class TrialSlice:
    """Begin or continue the trial, and stop at `rung` (its place in the list of rungs) with a checkpoint.

    `share` of the whole trial is done by then. `scale` is the device's time for a second of the reference device,
    `price` what its second is billed.
    """

    rung: int
    share: float
    scale: float = 1.0
    price: float = 1.0


@dataclass(frozen=True)
class StartTrial:
    """Run `candidate` (number `index` of the tenant's list) of `tenant` on `device`.

    `fraction` of the tenant's data is used. `limit` is the most this trial may be billed before it is
    stopped; for a tenant with a budget that much is set aside until the trial ends. `memory` is what the
    policy wants to be told next time: the caller keeps it, so that policies stay pure. With `slice` the trial
    stops at a rung and may be continued later. With `pack` it is trained together with others, and its cost is that of
    all of them.
    """

    tenant: str
    candidate: str
    index: int
    device: str
    reasons: Reasons
    fraction: float = 1.0
    limit: float = float("inf")
    memory: tuple[object, ...] = ()
    slice: TrialSlice | None = None
    pack: PackPlace | None = None


def decision_json(trial: StartTrial) -> dict[str, Any]:
    """Returns the decision as it is stored; no limit is null, for JSON has no infinity."""
    kept = {**asdict(trial), "memory": []}
    kept["limit"] = trial.limit if math.isfinite(trial.limit) else None
    return kept


def trial_of_json(raw: Mapping[str, Any], tenant: str, index: int) -> StartTrial:
    """The stored decision, as of the tenant and with the place that its candidate has there now."""
    reasons = dict(raw["reasons"])
    other = reasons.pop("runner_up", None)
    limit = raw.get("limit")
    return StartTrial(
        tenant=tenant,
        candidate=raw["candidate"],
        index=index,
        device=raw["device"],
        reasons=Reasons(**reasons, runner_up=RunnerUp(**other) if other else None),
        fraction=raw.get("fraction", 1.0),
        limit=math.inf if limit is None else float(limit),
        slice=TrialSlice(**raw["slice"]) if raw.get("slice") else None,
        pack=PackPlace(**raw["pack"]) if raw.get("pack") else None,
    )


@dataclass(frozen=True)
class LeaveIdle:
    """Nothing worth running on `device` now; `why` in words."""

    device: str
    why: str


Decision: TypeAlias = StartTrial | LeaveIdle

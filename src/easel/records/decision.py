"""What a policy decided, with its reasons: enough to answer "why is my app waiting?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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

    def sentence(self) -> str:
        """For people: what was weighed, in one line."""
        text = (
            f"{self.rule}: expects quality {self.mean:.3f} ± {self.deviation:.3f} (best so far "
            f"{self.best_so_far:.3f}) at cost {self.cost:.3g}; scores {self.acquisition:.3g}"
        )
        other = self.runner_up
        if other is None:
            return f"{text}; nobody else has anything to run"
        return f"{text}; next best is {other.candidate} of {other.tenant} with {other.acquisition:.3g}"


@dataclass(frozen=True)
class StartTrial:
    """Run `candidate` (number `index` of the tenant's list) of `tenant` on `device`.

    `fraction` of the tenant's data is used. `limit` is the most this trial may be billed before it is
    stopped; for a tenant with a budget that much is set aside until the trial ends. `memory` is what the
    policy wants to be told next time: the caller keeps it, so that policies stay pure.
    """

    tenant: str
    candidate: str
    index: int
    device: str
    reasons: Reasons
    fraction: float = 1.0
    limit: float = float("inf")
    memory: tuple[object, ...] = ()


@dataclass(frozen=True)
class LeaveIdle:
    """Nothing worth running on `device` now; `why` in words."""

    device: str
    why: str


Decision: TypeAlias = StartTrial | LeaveIdle

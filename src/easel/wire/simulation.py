"""How well a pool serves its apps: as it was, and as it would have been."""

from __future__ import annotations

from typing import Annotated

from easel.wire.model import Answer, Field, Moment, Request

Name = Annotated[str, Field(min_length=1, max_length=200)]


class PastTrial(Request):
    """One trial that ended; without a quality it failed."""

    tenant: Name
    candidate: Name
    quality: Annotated[float | None, Field(allow_inf_nan=False)]
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False, description="In any unit; times are in it too")]


class Simulate(Request):
    """Replay a history under policies and pool sizes. Without `history`, the project's own trials are taken."""

    policies: Annotated[list[Name], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: ["easel", "round-robin"]
    )
    devices: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=8)] = Field(
        default_factory=lambda: [1]
    )
    serve: Annotated[int, Field(ge=1, le=200, description="Apps served at once; the others came before")] = 10
    share: Annotated[float, Field(gt=0, le=1, description="Horizon: this share of all on one device")] = 0.2
    repetitions: Annotated[int, Field(ge=1, le=100)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    failures: Annotated[float, Field(ge=0, lt=1)] = 0.0
    cost_noise: Annotated[float, Field(ge=0, le=3)] = 0.0
    history: Annotated[list[PastTrial] | None, Field(max_length=100_000)] = None


class SimulatedRun(Answer):
    """The mean loss (best possible minus best so far) over time; `mean_loss` is its mean over the horizon."""

    policy: str
    devices: int
    time: list[float]
    loss: list[float]
    mean_loss: float


class Simulated(Answer):
    tenants: int
    candidates: int
    trials: int
    horizon: float
    runs: list[SimulatedRun]


class PoolSizes(Request):
    """Compare the pool with larger ones by what the installation itself did."""

    more: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=8)] = Field(
        default_factory=lambda: [1, 2, 4],
        description="How many units more: GPUs where jobs use them, else machines like the most usual one",
    )
    days: Annotated[float, Field(gt=0, le=3650, description="How much of the history counts")] = 90.0
    per_hour: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="What a unit costs; else by the price book"),
    ] = None


class PoolWaiting(Answer):
    """How long ordinary jobs wait: the mean, what nine of ten stay below, and how many fit nowhere."""

    mean_s: float
    most_s: float
    never: int


class PoolSize(Answer):
    """A pool with `more` units than today's, and what these cost in a month."""

    more: int
    waiting: PoolWaiting
    to_best_s: Annotated[
        float | None,
        Field(description="When everybody's best model is as good as today's pool ever makes it"),
    ] = None
    per_month: float


class PoolAdvice(Answer):
    """The sizes that were tried, today's first; `recommended` is how many units more, `words` say it."""

    unit: Annotated[str, Field(description="GPU or device")]
    units: Annotated[int, Field(description="How many there are today")]
    jobs: Annotated[int, Field(description="Ordinary jobs in the history")]
    trials: Annotated[int, Field(description="Trials of apps in the history")]
    days: float
    currency: str
    sizes: list[PoolSize]
    recommended: int
    words: str


class PolicyNames(Answer):
    items: list[str]


class HappinessStep(Answer):
    at: Moment
    quality: float


class AppHappiness(Answer):
    app: str
    steps: list[HappinessStep]


class Happiness(Answer):
    """The best score of each app over time; `mean` over the apps that had a model by then."""

    mean: list[HappinessStep]
    items: list[AppHappiness]

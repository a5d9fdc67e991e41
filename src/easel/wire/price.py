"""Prices, bills, budgets, profiles, estimates."""

from __future__ import annotations

from typing import Annotated, Literal

from easel.wire.fields import Label, Slug
from easel.wire.job import Environment, Job, Plain, Reference
from easel.wire.model import Answer, Field, Json, Moment, Request

Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]
Money = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Cpus = Annotated[
    list[Annotated[float, Field(ge=0.5, le=1024, multiple_of=0.5)]], Field(min_length=1, max_length=50)
]
Memories = Annotated[list[Annotated[int, Field(ge=16, le=2**26)]], Field(min_length=1, max_length=50)]
Gpus = Annotated[
    list[Annotated[float, Field(ge=0, le=64, allow_inf_nan=False)]], Field(min_length=1, max_length=10)
]
Values = dict[Annotated[str, Field(max_length=100)], Positive] | list[Positive]
Confidence = Annotated[float, Field(ge=0.5, lt=1, description="0.95: the limits hold with 95 % probability")]


class StartProfile(Request):
    """A command with hints, `python train.py --epoch {1,2,5}`, and the job around it."""

    name: Slug
    template: Annotated[
        str, Field(min_length=1, max_length=20_000, examples=["python train.py --epoch {1,2,5}"])
    ]
    code: Reference | None = None
    inputs: list[Reference] = Field(
        default_factory=list, max_length=10, description="File sets of different sizes"
    )
    output_folder: Annotated[str, Field(min_length=1, max_length=500)] = "output"
    environment: Environment = Field(default_factory=Environment)
    tags: dict[Label, float | Plain] = Field(default_factory=dict, max_length=100)
    cpus: Cpus = Field(default_factory=lambda: [0.5, 1.0, 2.0])
    memories_mb: Memories = Field(default_factory=lambda: [512, 1024, 2048])
    gpus: Gpus = Field(default_factory=lambda: [0.0], description="Numbers of GPUs to try: 0,1")
    design: Literal["optimal", "full"] = "optimal"
    size: Annotated[int | None, Field(ge=4, le=2000, description="How many runs; empty means enough")] = None
    time_limit_s: Annotated[float, Field(gt=0, le=366 * 86400, description="Of each run")] = 600.0
    budget: Annotated[Money | None, Field(description="What all runs may cost at most")] = None


class PlannedRun(Answer):
    command: str
    vcpu: float
    memory_mb: float
    gpus: float
    most_cost: float
    likely_cost: float | None


class ProfilePlan(Answer):
    """What a profile would run. `likely_cost` is known when the command was profiled before."""

    runs: list[PlannedRun]
    grid: int
    dropped: int
    most_cost: float
    likely_cost: float | None


class Profile(Answer):
    """One version of what is known about a command."""

    id: str
    name: str
    version: int
    template: str
    state: Annotated[str, Field(description="running, fitted or failed")]
    reason: str | None
    plan: Json
    done: Annotated[int | None, Field(description="Runs that have ended, while it is running")] = None
    model: Annotated[str | None, Field(description="The kind of model that leave-one-out chose")] = None
    left_out: Annotated[
        dict[str, float] | None, Field(description="Leave-one-out error of each candidate, in log seconds")
    ] = None
    runs: list[Json]
    created_at: Moment
    fitted_at: Moment | None


class ResourceShape(Answer):
    vcpu: float
    memory_mb: float


class AskShape(Request):
    vcpu: Positive
    memory_mb: Positive
    gpus: Annotated[float, Field(ge=0, le=64, allow_inf_nan=False)] = 0.0


class EstimateRequest(Request):
    values: Values
    shapes: Annotated[list[AskShape], Field(min_length=1, max_length=500)]
    confidence: Confidence | None = None


class Offer(Answer):
    """Seconds with their 90 % interval, and the price. `sure_*` are what limits are held against."""

    vcpu: float
    memory_mb: float
    gpus: float
    seconds: float
    low_seconds: float
    high_seconds: float
    cost: float
    sure_seconds: float
    sure_cost: float
    per_hour: float
    extrapolated: list[str]
    terms: Annotated[
        str, Field(description="Of the devices that it is for, such as spot; empty: those of the price book")
    ] = ""
    wait_seconds: Annotated[
        float, Field(description="In the queue, in the middle of what is to be expected")
    ] = 0.0
    starts_at: Annotated[
        Moment | None, Field(description="When it would probably start, submitted now; empty: never")
    ] = None
    ends_by: Annotated[
        Moment | None,
        Field(description="By when it would have ended: wait and run together, at the confidence asked for"),
    ] = None


class PromisesKept(Answer):
    """How often what waiting jobs were told came true, over the last jobs that have ended."""

    jobs: int
    kept_80: Annotated[float | None, Field(description="Share that ended by the moment told at 80 %")]
    kept_90: float | None
    kept_95: float | None
    near_starts: Annotated[
        float | None, Field(description="Share that started within 30 % of the wait that was expected")
    ]
    waited: Annotated[int, Field(description="Jobs among them that waited for more than five seconds")]
    near_starts_of_waited: float | None


class OfferList(Answer):
    items: list[Offer]


class Provision(Request):
    """The cheapest size within a time, or the fastest within a cost. A deadline is a moment with its zone."""

    values: Values
    aim: Literal["cheapest", "fastest"]
    max_seconds: Positive | None = None
    max_cost: Money | None = None
    deadline: Moment | None = None
    confidence: Confidence | None = None
    input: Reference | None = None
    cpus: Cpus | None = None
    memories_mb: Memories | None = None
    gpus: Annotated[Gpus | None, Field(description="Without it those that the profile tried")] = None
    submit: Annotated[bool, Field(description="Whether to submit the job, or only say what it would be")] = (
        True
    )


class Alternative(Answer):
    offer: Offer
    remedy: str


class Provisioned(Answer):
    """`offer` and, when submitted, `job`; or `why` nothing fits, with the nearest ways out."""

    profile: str
    feasible: bool
    offer: Offer | None = None
    job: Job | None = None
    why: str | None = None
    nearest: list[Alternative] = Field(default_factory=list)
    front: list[Offer] = Field(
        default_factory=list, description="Sizes that none beats in both time and cost"
    )


class BillLine(Answer):
    start: Moment
    seconds: float
    per_hour: float
    amount: float
    currency: str
    book: str


class Bill(Answer):
    """What a job has cost so far. A job that runs is billed when it ends; `promised` is what was predicted."""

    job_id: str
    amount: float
    lines: list[BillLine]
    currency: Annotated[str, Field(description="Of every amount", examples=["EUR"])] = "USD"
    promised_cost: float | None = None
    promised_seconds: float | None = None
    seconds: float | None = None


class BillTotal(Answer):
    group: str
    jobs: int
    hours: float
    amount: float
    currency: str


class BillReport(Answer):
    by: str
    month: str | None
    items: list[BillTotal]


class SetBudget(Request):
    limit: Money
    period: Literal["month", "total"] = "month"
    warn_at: list[Annotated[float, Field(gt=0, le=10)]] = Field(
        default_factory=lambda: [0.5, 0.8, 1.0], max_length=20
    )
    hard_stop: Annotated[
        bool, Field(description="Refuse new jobs and stop running ones when it is spent")
    ] = True


class Budget(Answer):
    """`limit` is empty where there is no budget."""

    limit: float | None
    period: str | None
    warn_at: list[float]
    hard_stop: bool
    spent: Annotated[float, Field(description="Billed in this period, and run up by jobs that still run")]
    billed: Annotated[
        float, Field(description="Of `spent` what ended jobs came to: the sum of the bills of this period")
    ] = 0.0
    committed: Annotated[
        float, Field(description="`spent`, and what running jobs were expected to cost beyond it")
    ]
    spent_since: Annotated[
        float | None, Field(description="What was run up after the moment that was asked for")
    ] = None
    currency: Annotated[str, Field(description="Of every amount", examples=["EUR"])] = "USD"


class SetPrices(Request):
    """A book that comes with Easel, or one of your own as TOML."""

    name: Annotated[str | None, Field(max_length=100)] = None
    toml: Annotated[str | None, Field(max_length=100_000)] = None
    since: Annotated[Moment | None, Field(description="A moment to come; empty means now")] = None


class PriceChange(Answer):
    since: Moment
    book: Json


class PriceList(Answer):
    """The history of prices, and the names of the books that come with Easel."""

    items: list[PriceChange]
    shipped: list[str]


class ChargeLine(Answer):
    """What one person's jobs in one project came to in a month."""

    project: str
    user: str
    jobs: int
    hours: float
    gpu_hours: float
    amount: float
    currency: str
    held_gpu_hours: Annotated[
        float | None,
        Field(description="Of a report on idle GPUs: GPU-hours in which they were held, idle or not"),
    ] = None
    running_jobs: Annotated[
        int | None, Field(description="Of a report on idle GPUs: how many of the jobs still run")
    ] = None


class IdleJob(Answer):
    """A job that runs and whose GPUs were idle for some of its time. `amount` is what that part came to."""

    job: str
    name: str
    project: str
    user: str
    device: str | None
    gpus: float
    since: Moment
    held_gpu_hours: float
    idle_gpu_hours: float
    amount: float
    currency: str


class IdleJobs(Answer):
    items: Annotated[list[IdleJob], Field(description="Who wasted most first")]


class Chargeback(Answer):
    month: str
    items: Annotated[list[ChargeLine], Field(description="The dearest first")]

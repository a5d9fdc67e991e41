"""Queues, devices, reservations and secrets."""

from __future__ import annotations

from typing import Annotated, Any

from easel.wire.fields import Slug
from easel.wire.model import Answer, Field, Moment, Request


class Queue(Answer):
    user_id: str
    user: str
    queued: int
    active: int
    max_active: int
    paused: bool


class QueueList(Answer):
    items: list[Queue]


class ChangeQueue(Request):
    """What is left out stays as it is. Without a user it holds for everybody without a setting of their own."""

    user: Annotated[str | None, Field(max_length=100)] = None
    max_active: Annotated[int | None, Field(ge=0, le=100_000)] = None
    paused: bool | None = None


class ReorderQueue(Request):
    user: Annotated[str, Field(max_length=100)]
    first: Annotated[list[Annotated[str, Field(max_length=60)]], Field(min_length=1, max_length=10_000)]


class JobIds(Answer):
    items: list[str]


class DrainDevice(Request):
    by: Annotated[
        Moment | None, Field(description="What still runs then is stopped and tried again elsewhere")
    ] = None
    reason: Annotated[str, Field(max_length=200, examples=["new memory"])] = ""


class ReserveDevice(Request):
    """Only jobs of the project begin on the device between these moments; what runs there may end."""

    project: Slug
    start: Moment
    end: Moment


class Reservation(Answer):
    id: str
    device: str
    project: Annotated[str | None, Field(description="Empty where you cannot enter it")]
    start: Moment
    end: Moment


class ReservationList(Answer):
    items: list[Reservation]


class DeviceDrain(Answer):
    since: Moment
    by: Moment | None
    reason: str
    running: Annotated[int, Field(description="Attempts that it still has; none: it is empty")]


class DeviceGpu(Answer):
    """A GPU as its driver last told of it."""

    number: int
    use: Annotated[str, Field(description="How busy it is and how much of its memory is taken, by whomever")]


class Device(Answer):
    name: str
    executor: str
    vcpu: float
    memory_mb: int
    gpus: int
    gpu_kind: Annotated[str | None, Field(description="What its GPUs are; None where it has none")] = None
    gpu_memory_mb: Annotated[int | None, Field(description="Memory of the smallest of them, where known")] = (
        None
    )
    gpu_use: Annotated[list[DeviceGpu], Field(description="How busy each is, where its driver says")] = Field(
        default_factory=list
    )
    gpu_fault: Annotated[str | None, Field(description="Why its GPUs get no work")] = None
    gpus_held: Annotated[float, Field(description="GPUs, and shares of them, that running jobs hold")] = 0.0
    gpu_jobs: Annotated[int, Field(description="Running jobs that hold any")] = 0
    notes: dict[str, Any]
    connected: bool
    seen_at: Moment
    drain: Annotated[DeviceDrain | None, Field(description="Set while it gets no more work")] = None


class DeviceList(Answer):
    items: list[Device]


class Amounts(Answer):
    """What some jobs hold of a device together."""

    jobs: int
    vcpu: float
    memory_mb: float
    gpus: float


class DeviceUse(Answer):
    device: str
    mine: Amounts
    others: Annotated[Amounts, Field(description="What all other projects hold, unnamed")]


class PoolUse(Answer):
    """What this project and all others hold of each device, and how many jobs of each wait for room."""

    items: list[DeviceUse]
    waiting: int
    waiting_others: int


class HeldOverTime(Answer):
    """What a project held on average in each span of time."""

    project: Annotated[str, Field(description="`others`: all projects but the caller's, unnamed")]
    vcpu: list[float]
    gpus: list[float]


class PoolHistory(Answer):
    """The pool's use over time, in spans of equal length; who used most comes first."""

    since: Moment
    step_s: Annotated[float, Field(description="How long a span is, in seconds")]
    vcpu: Annotated[float, Field(description="What the devices that are connected now have")]
    gpus: float
    held: list[HeldOverTime]
    complete: Annotated[
        bool, Field(description="False: there were so many attempts that the oldest are left out")
    ]


class PutSecret(Request):
    value: Annotated[str, Field(min_length=1, max_length=65_536, pattern=r"^[^\x00]+$")]


class SecretNames(Answer):
    items: list[str]


class PoolShares(Answer):
    """What is kept of the pool for a kind of work."""

    apps: Annotated[
        float, Field(description="The least share of the pool's cores for trials of apps, 0 to 1")
    ]


class KeepShares(Request):
    apps: Annotated[float, Field(ge=0, le=1, description="0: nothing is kept; 0.25: a quarter of the cores")]


class Share(Answer):
    """What somebody has used of the pool, fading with time, and what it is held against."""

    user: Annotated[str | None, Field(description="None: the project, among all projects")]
    core_hours: Annotated[float, Field(description="Used so far; half of it counts after the half-life")]
    weight: float
    priority: int


class ShareList(Answer):
    items: list[Share]


class SetShare(Request):
    """`user` null weighs the project among all, which is for platform admins."""

    user: Annotated[str | None, Field(max_length=100)] = None
    weight: Annotated[float, Field(gt=0, le=1000, description="2 may use twice as much as 1")] = 1.0
    priority: Annotated[int, Field(ge=-10, le=10, description="Higher goes first, whatever was used")] = 0

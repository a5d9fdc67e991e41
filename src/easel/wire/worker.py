"""What workers and the server say to each other, and the credentials of workers."""

from __future__ import annotations

from typing import Annotated, Any

from easel.wire.fields import Label
from easel.wire.model import Answer, Field, Moment, Request

DeviceName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", examples=["gpu-box-3"])
]
Key = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+\.[0-9]+(-[0-9]+)?$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
MAX_WAIT_S = 30.0


class Capacity(Request):
    vcpu: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
    memory_mb: Annotated[int, Field(ge=0, lt=2**40)]
    gpus: Annotated[int, Field(ge=0, le=1024)] = 0


class AttemptNews(Request):
    """New lines of an attempt's journal, or that nothing of it is left."""

    key: Key
    entries: Annotated[list[dict[str, Any]], Field(max_length=100_000)] = Field(default_factory=list)
    gone: Annotated[str | None, Field(max_length=2000)] = None
    end: Annotated[str | None, Field(max_length=20, description="Why it is gone, as a code compares it")] = (
        None
    )


class Exchange(Request):
    """Everything a worker has, and what is new. `session` is 0 the first time; `number` grows with each."""

    device: DeviceName
    executor: Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,19}$")] = "remote"
    session: Annotated[int, Field(ge=0, lt=2**60)] = 0
    number: Annotated[int, Field(ge=1, lt=2**60)]
    clock: Annotated[float, Field(description="The worker's time, seconds since 1970", allow_inf_nan=False)]
    monotonic: Annotated[
        float | None,
        Field(
            description="Seconds of the worker's clock that nobody sets, as in `m` of entries",
            allow_inf_nan=False,
        ),
    ] = None
    capacity: Capacity
    labels: Annotated[dict[str, Annotated[str, Field(max_length=200)]], Field(max_length=64)] = Field(
        default_factory=dict
    )
    notes: Annotated[dict[str, Annotated[str, Field(max_length=500)]], Field(max_length=64)] = Field(
        default_factory=dict
    )
    address: Annotated[str, Field(max_length=100)] = ""
    attempts: Annotated[
        dict[str, int], Field(description="What it has: 0, or 1 or 2 where a kill was heard")
    ] = Field(default_factory=dict)
    news: Annotated[list[AttemptNews], Field(max_length=10_000)] = Field(default_factory=list)
    ahead: Annotated[int, Field(ge=0, le=64, description="Short trials that it takes beyond its room")] = 0
    remaining_s: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    wait_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] = 0.0
    leaving: bool = False
    gave_way: Annotated[
        list[Key] | None,
        Field(max_length=10_000, description="Attempts asked to stop at a checkpoint; null: it cannot ask"),
    ] = None


class Given(Answer):
    """An order that is this worker's now; `offer` is a name that no other order has."""

    offer: str
    order: dict[str, Any]


class VisitAsked(Answer):
    """Somebody comes in to an attempt of this worker: connect to `/worker/attempts/KEY/visits/VISIT`."""

    visit: str
    key: str


class Orders(Answer):
    """What the worker should do now."""

    session: int
    start: list[Given] = Field(default_factory=list)
    kill: dict[str, bool] = Field(default_factory=dict)
    give_way: Annotated[list[str], Field(description="Attempts to stop at their next checkpoint")] = Field(
        default_factory=list
    )
    forget: dict[str, bool] = Field(default_factory=dict)
    resend: Annotated[
        dict[str, int], Field(description="Attempts whose journals must be sent again, from which entry on")
    ] = Field(default_factory=dict)
    visits: Annotated[list[VisitAsked], Field(description="People who come in to running attempts")] = Field(
        default_factory=list
    )


class ObjectSource(Request):
    """`size` bytes of an object from `offset`."""

    object: Digest
    offset: Annotated[int, Field(ge=0, lt=2**50)]
    size: Annotated[int, Field(ge=0, lt=2**50)]


class ObjectSources(Request):
    items: Annotated[list[ObjectSource], Field(max_length=10_000)]


class ObjectAddresses(Answer):
    items: list[str]


class OpenStage(Request):
    id: Annotated[str, Field(pattern="^[a-z0-9_-]{1,120}$")]
    size: Annotated[int, Field(ge=0, lt=2**50)]


class WireStage(Request):
    """Where an output is gathered, as the server said it."""

    id: Annotated[str, Field(pattern="^[a-z0-9_-]{1,120}$")]
    size: Annotated[int, Field(ge=0, lt=2**50)]
    part_size: Annotated[int, Field(ge=1, lt=2**50)]
    handle: Annotated[str, Field(max_length=2000)] = ""


class OpenedStage(Answer):
    id: str
    size: int
    part_size: int
    handle: str
    addresses: Annotated[list[str], Field(description="Where to PUT each part")]


class WirePackMember(Request):
    digest: Digest
    offset: Annotated[int, Field(ge=0, lt=2**50)]
    size: Annotated[int, Field(ge=0, lt=2**50)]


class FinishStage(Request):
    stage: WireStage
    digest: Digest
    size: Annotated[int, Field(ge=0, lt=2**50)]
    members: Annotated[list[WirePackMember], Field(max_length=100_000)] = Field(default_factory=list)


class Done(Answer):
    done: bool = True


class CreateWorkerToken(Request):
    name: Label
    expires_at: Moment | None = None


class WorkerToken(Answer):
    id: str
    name: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


class WorkerTokenList(Answer):
    items: list[WorkerToken]


class IssuedWorkerToken(WorkerToken):
    secret: Annotated[
        str | None,
        Field(description="Shown once. Null when a retried request finds that it was shown already"),
    ]

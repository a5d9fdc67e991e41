"""What people say about apps and studies, and why something waits, over the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from easel.wire.model import Answer, AwareDatetime, Field, Request

Kind = Literal["app", "study", "job"]


class SetTerms(Request):
    """What is left out stays as it is; null takes a deadline, a budget or a target away."""

    weight: Annotated[
        float | None, Field(ge=0, le=1e6, description="How much its gain counts; 1 is usual")
    ] = None
    deadline: Annotated[
        AwareDatetime | None, Field(description="Nothing of it starts or runs after this")
    ] = None
    budget: Annotated[
        float | None, Field(ge=0, le=1e9, description="The most that its trials may be billed in all")
    ] = None
    until: Annotated[float | None, Field(description="The quality, in its own metric, that is enough")] = None
    paused: Annotated[
        bool | None, Field(description="true: start nothing; false: go on, even for little")
    ] = None


class Terms(Answer):
    weight: float
    deadline: AwareDatetime | None
    budget: float | None
    until: float | None
    paused: bool


class TermLimits(Request):
    """The most that members of a project may ask for; null: no limit."""

    max_weight: Annotated[float | None, Field(ge=0, le=1e6)] = None
    max_budget: Annotated[float | None, Field(ge=0, le=1e9)] = None


class Why(Answer):
    """What an app, a study or a job does or waits for."""

    kind: Kind
    name: str
    status: str
    sentence: str
    since: AwareDatetime | None
    next: Annotated[str | None, Field(description="What would run next for it, and why")] = None
    details: Annotated[str | None, Field(description="The numbers behind it")] = None
    starts_at: Annotated[
        AwareDatetime | None,
        Field(description="When a job that waits probably starts: as likely before as after"),
    ] = None
    starts_by: Annotated[AwareDatetime | None, Field(description="The same with a probability of 90 %")] = (
        None
    )
    ends_by: Annotated[
        AwareDatetime | None,
        Field(description="By when it has ended with a probability of 90 %, wait and run"),
    ] = None

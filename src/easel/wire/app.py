"""Apps over the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from easel.wire.model import Answer, Request


class DeclareApp(Request):
    name: Annotated[str, Field(max_length=64, examples=["flowers"])]
    program: Annotated[
        str, Field(max_length=1_000_000, examples=["input: image 28 x 28\noutput: [cat, dog]"])
    ]
    metric: Annotated[str | None, Field(max_length=40, description="Without it the task's usual one")] = None


class Pair(Request):
    input: Any
    output: Any


class FeedPairs(Request):
    pairs: Annotated[list[Pair], Field(max_length=50_000)]


class Refine(Request):
    """Switch these examples; `undo` takes back the newest switch and names none."""

    digests: Annotated[list[str], Field(max_length=50_000, default_factory=list)]
    on: bool = False
    undo: bool = False


class Infer(Request):
    objects: Annotated[list[Any], Field(max_length=10_000)]


class BestModel(Answer):
    candidate: str
    model: str
    quality: float


class App(Answer):
    id: str
    name: str
    program: str
    template: str
    metric: str
    created_at: AwareDatetime
    examples: int
    switched_off: int
    trials: int
    running: list[str]
    best: BestModel | None
    last_improvement_at: AwareDatetime | None
    why: Annotated[str | None, Field(description="What the policy weighed when it last chose for this app")]


class AppList(Answer):
    items: list[App]


class Fed(Answer):
    new: int
    known: int
    total: int


class Example(Answer):
    digest: str
    stratum: str
    fold: int
    on: bool
    fed_at: AwareDatetime


class ExampleList(Answer):
    items: list[Example]


class Refined(Answer):
    changed: list[str]


class Answers(Answer):
    answers: list[dict[str, Any]]
    candidate: str
    model: str
    quality: float

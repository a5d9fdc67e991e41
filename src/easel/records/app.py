"""Apps and their examples as facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.ids import AppId, JobId, ProjectId, UserId


@dataclass(frozen=True, slots=True)
class App:
    """`examples_set` names the file-set version that holds all examples ever fed. `vectors` is the path of the word
    vectors that it was given, each of `vector_size` numbers; `rates_inside`: trials look for their learning rate.
    `more_until`: the rest of a feed is on its way; nothing is learned from a part of it before that moment.
    `examples_key` is equal for apps whose switched-on examples are the same; None where it was never worked out.
    `styles`: how its columns write numbers and dates, as `declare.styles` reads them.
    """

    id: AppId
    project_id: ProjectId
    user_id: UserId
    name: str
    program: str
    metric: str | None
    created_at: datetime
    examples_set: str | None
    summary: Mapping[str, Any] | None
    pinned: str | None = None
    suspects_job: JobId | None = None
    rates_inside: bool = False
    vectors: str | None = None
    vector_size: int = 0
    more_until: datetime | None = None
    examples_key: str | None = None
    styles: Mapping[str, Mapping[str, str]] | None = None

    @property
    def folder(self) -> str:
        """Where the lake keeps its examples. An app of the same name that comes later has another."""
        return f"/apps/{self.name}/{self.id[-8:]}/"


@dataclass(frozen=True, slots=True)
class FedExample:
    """One example ever fed: `fold` for validation, fixed for good; `on` says whether it trains."""

    digest: str
    stratum: str
    fold: int
    on: bool
    fed_at: datetime
    preview: str | None = None
    answer: str | None = None
    shard: str | None = None
    start: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A pair that does not fit the program: its number in the feed, its file if it has one, and why."""

    pair: int
    why: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Fed:
    """What a feed did: how many were new, how many were there already, and what is odd about them."""

    new: int
    known: int
    total: int
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppTrial:
    """A decision that was acted on. `quality` is None while it runs and where it failed.

    `name` is the candidate's; `shared` among how many apps its cost was divided, `spent_micros` what this one paid.
    `error` is the deviation of `quality` by sampling, `baseline` what always giving the same answer scores.
    `share` is how far its slice brought the trial, `scale` its device's time for a second of the reference device.
    `luck`, of a trial that combined others, is by how much the best of them scored too high, being chosen by the same
    examples.
    """

    app_id: AppId
    job_id: JobId
    candidate: Mapping[str, Any]
    decision: Mapping[str, Any]
    started_at: datetime
    examples: int
    ended: bool
    quality: float | None
    seconds: float | None
    model_set: str | None
    ended_at: datetime | None = None
    name: str = ""
    spent_micros: int | None = None
    shared: int = 1
    error: float | None = None
    baseline: float | None = None
    share: float = 1.0
    scale: float = 1.0
    luck: float | None = None


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """An `AppTrial` that has ended, without its decision. `score` is the policy's when it was chosen."""

    app_id: AppId
    job_id: JobId
    name: str
    score: float
    examples: int
    quality: float | None
    seconds: float
    spent_micros: int
    model_set: str | None
    ended_at: datetime
    share: float
    scale: float
    luck: float | None


@dataclass(frozen=True, slots=True)
class ExampleCounts:
    """Of one app: how many are on in each stratum, and how many are off."""

    on: Mapping[str, int]
    off: int

    @property
    def total_on(self) -> int:
        return sum(self.on.values())

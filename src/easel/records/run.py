"""Runs and models as MLflow's clients see them: experiments, what a run logged, logged and registered models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from easel.ids import JobId, ProjectId, UserId
from easel.records.job import JobState

DEFAULT_EXPERIMENT = 0


@dataclass(frozen=True, slots=True)
class Experiment:
    """A group of runs. Number 0 is there in every project. `artifact_location` is None where Easel keeps the files."""

    number: int
    name: str
    artifact_location: str | None
    tags: Mapping[str, str]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What of a job is a run's description. `free` is one that Easel only keeps the record of."""

    id: JobId
    project_id: ProjectId
    user_id: UserId
    name: str
    free: bool
    said_user: str
    state: JobState
    attempt: int
    artifact_id: int
    experiment: int
    output_set: str | None
    submitted_at: datetime
    ended_at: datetime | None
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class LastValue:
    """The newest point of a series; `text` says what it is when it is no number."""

    name: str
    step: int
    at: datetime
    value: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """A data set that a run read; `body` holds source, schema, profile and the tags of this use."""

    name: str
    digest: str
    context: str | None
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A logged model that a run took (`input`) or made (`output`)."""

    model_id: str
    role: str
    step: int


@dataclass(frozen=True, slots=True)
class RunLog:
    """All that a run has logged, besides files."""

    metrics: Sequence[LastValue] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    datasets: Sequence[DatasetUse] = ()
    models: Sequence[ModelUse] = ()


@dataclass(frozen=True, slots=True)
class LoggedModel:
    """A model that a run made, with the files in the lake below its id."""

    id: str
    project_id: ProjectId
    experiment: int
    name: str
    status: str
    status_message: str | None
    model_type: str | None
    run_id: str | None
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Sequence[Mapping[str, Any]]
    creator: UserId
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A named model with numbered versions: the file set `file_set`. `aliases` maps a name to a version."""

    project_id: ProjectId
    name: str
    file_set: str
    description: str | None
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    latest: int
    creator: UserId
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version. `set_version` is the version of the model's file set; None where its files lie outside of Easel."""

    project_id: ProjectId
    name: str
    version: int
    set_version: int | None
    source: str
    run_id: str | None
    run_link: str | None
    model_id: str | None
    stage: str
    description: str | None
    tags: Mapping[str, str]
    creator: UserId
    created_at: datetime
    updated_at: datetime

"""What is moved: experiments, runs, points of metrics, logged and registered models. And who has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class MovedExperiment:
    id: str
    name: str
    tags: Mapping[str, str]
    deleted: bool = False


class MovedUse(NamedTuple):
    """A logged model that a run read or made, and at which step it made it."""

    model_id: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class MovedRun:
    """Times in milliseconds; `metrics` are the keys of its series, `datasets` what MLflow calls `dataset_inputs`."""

    id: str
    name: str
    user: str
    status: str
    start_time: int
    end_time: int | None
    deleted: bool
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Sequence[str]
    artifact_uri: str
    datasets: Sequence[Mapping[str, Any]] = ()
    models_read: Sequence[MovedUse] = ()
    models_made: Sequence[MovedUse] = ()


class MovedPoint(NamedTuple):
    value: float
    timestamp: int
    step: int


class MovedFile(NamedTuple):
    path: str
    size: int


class MovedMetric(NamedTuple):
    """What a run measured of a logged model, on a data set if one is named."""

    key: str
    point: MovedPoint
    run_id: str
    dataset_name: str | None = None
    dataset_digest: str | None = None


@dataclass(frozen=True, slots=True)
class MovedLoggedModel:
    """A model that a run logged (MLflow 3), with its files below `artifact_uri`."""

    id: str
    name: str
    status: str
    model_type: str
    run_id: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Sequence[MovedMetric]
    artifact_uri: str


@dataclass(frozen=True, slots=True)
class MovedVersion:
    version: int
    source: str
    run_id: str
    stage: str
    description: str
    tags: Mapping[str, str]
    model_id: str = ""


@dataclass(frozen=True, slots=True)
class MovedModel:
    """A registered model with its versions by number."""

    name: str
    description: str
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    versions: Sequence[MovedVersion]


class TrackingSource(Protocol):
    """Whoever has runs to be moved. What is asked for and cannot be read raises an EaselError or an OSError."""

    @property
    def troubles(self) -> Sequence[str]:
        """What was left out of lists since it could not be read, and why."""
        ...

    def experiments(self) -> list[MovedExperiment]: ...

    def count_runs(self, experiment_id: str) -> int: ...

    def runs(self, experiment_id: str) -> Iterator[MovedRun]: ...

    def history(self, run_id: str, key: str) -> Iterable[MovedPoint]: ...

    def files(self, run: MovedRun) -> Iterator[MovedFile]: ...

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]: ...

    def logged_models(self, experiment_id: str) -> Iterator[MovedLoggedModel]: ...

    def logged_files(self, model: MovedLoggedModel) -> Iterator[MovedFile]: ...

    def read_logged(self, model: MovedLoggedModel, path: str) -> Iterator[bytes]: ...

    def models(self) -> list[MovedModel]: ...

    def version_files(self, version: MovedVersion) -> Iterator[MovedFile]:
        """Files of a version that lie outside of its run, if they can be read."""
        ...

    def read_version(self, version: MovedVersion, path: str) -> Iterator[bytes]: ...

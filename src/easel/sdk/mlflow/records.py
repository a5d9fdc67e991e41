"""What is moved: experiments, runs, points of metrics, registered models. And who has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class MovedExperiment:
    id: str
    name: str
    tags: Mapping[str, str]
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class MovedRun:
    """Times in milliseconds; `metrics` are the keys of its series."""

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


class MovedPoint(NamedTuple):
    value: float
    timestamp: int
    step: int


class MovedFile(NamedTuple):
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class MovedVersion:
    version: int
    source: str
    run_id: str
    stage: str
    description: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MovedModel:
    """A registered model with its versions by number."""

    name: str
    description: str
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    versions: Sequence[MovedVersion]


class TrackingSource(Protocol):
    """Whoever has runs to be moved."""

    def experiments(self) -> list[MovedExperiment]: ...

    def runs(self, experiment_id: str) -> Iterator[MovedRun]: ...

    def history(self, run_id: str, key: str) -> Iterable[MovedPoint]: ...

    def files(self, run: MovedRun) -> Iterator[MovedFile]: ...

    def read(self, run: MovedRun, path: str) -> Iterator[bytes]: ...

    def models(self) -> list[MovedModel]: ...

    def version_files(self, version: MovedVersion) -> Iterator[MovedFile]:
        """Files of a version that lie outside of its run, if they can be read."""
        ...

    def read_version(self, version: MovedVersion, path: str) -> Iterator[bytes]: ...

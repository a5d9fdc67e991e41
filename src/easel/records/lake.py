"""Facts about what the lake holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from easel.ids import ProjectId, UploadId, UserId


class Kind(StrEnum):
    """What can be tagged, found and traced."""

    FILE = "file"
    FILE_SET = "fileset"
    JOB = "job"


TagValue = str | float | datetime
"""A tag's type is that of its value."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file version (`name` is its path), a file-set version, or a job (`name` is its id).

    `made_by` is the artifact id of the job that made it. `dropped_at` says when its bytes were given up.
    """

    id: int
    project_id: ProjectId
    kind: Kind
    name: str
    version: int
    creator: UserId
    created_at: datetime
    size: int
    digest: bytes | None
    made_by: int | None
    dropped_at: datetime | None


@dataclass(frozen=True, slots=True)
class FileSetVersion:
    """A named list of file versions; `sources` are the references it was made from, versions filled in."""

    artifact: Artifact
    files: int
    sources: Sequence[str]
    root: bytes = b""
    """The digest of its manifest: paths, versions and bytes."""

    def __str__(self) -> str:
        return f"{self.artifact.name}:{self.artifact.version}"


class UploadState(StrEnum):
    PENDING = "pending"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Upload:
    """The transaction that adds file versions: all of them, or none."""

    id: UploadId
    project_id: ProjectId
    creator: UserId
    state: UploadState
    created_at: datetime
    touched_at: datetime
    ended_at: datetime | None
    made_by: int | None


@dataclass(frozen=True, slots=True)
class UploadItem:
    """One file of an upload: where it goes and which bytes it has."""

    path: str
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Location:
    """Where a blob's bytes are: `size` bytes from `offset` of an object of the blob store."""

    object: bytes
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in a listing; it exists because files are below it."""

    path: str


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` was made from `source`: by the job, or by creating a file set where there is none."""

    id: int
    source: int
    target: int
    job: int | None


@dataclass(frozen=True, slots=True)
class Graph:
    """File sets and jobs by artifact id, and the edges between the sets."""

    nodes: Mapping[int, Artifact]
    edges: Sequence[Edge]
    next_cursor: str | None = None

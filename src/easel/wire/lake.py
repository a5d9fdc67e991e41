"""Files, uploads, file sets, tags, provenance, grants."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from easel.wire.fields import Tags as Tags
from easel.wire.fields import TagValue as TagValue
from easel.wire.model import Answer, Field, Moment, Request

Hash = Annotated[
    str,
    Field(pattern=r"^[0-9a-f]{64}$", description="BLAKE3 of the bytes, in hexadecimal", examples=["0" * 64]),
]
Size = Annotated[int, Field(ge=0, lt=2**50)]
Path = Annotated[str, Field(min_length=1, max_length=4096, examples=["/data/train.json"])]
Reference = Annotated[
    str,
    Field(min_length=1, max_length=4096, examples=["/data/", "/@HotpotQA", "/data/train.json:2"]),
]
SetName = Annotated[str, Field(min_length=1, max_length=128, examples=["HotpotQA"])]


class Kind(StrEnum):
    FILE = "file"
    FILE_SET = "fileset"
    JOB = "job"


class NewFile(Request):
    path: Path
    size: Size
    hash: Hash


class AddFiles(Request):
    files: Annotated[list[NewFile], Field(min_length=1, max_length=20_000)]


class WantedHashes(Answer):
    wanted: list[str]


class Wanted(Answer):
    hash: str
    size: int


class Upload(Answer):
    id: str
    state: Literal["pending", "committed", "aborted"]
    created_at: Moment
    ended_at: Moment | None
    files: int
    bytes: int
    held_bytes: Annotated[int, Field(description="Bytes that need not be sent any more")]


class StartUpload(Request):
    pass


class PackMember(Request):
    hash: Hash
    size: Size


class NewObject(Request):
    """What will be sent: one blob, or many small ones side by side (`members`, in their order)."""

    hash: Hash
    size: Size
    members: Annotated[list[PackMember], Field(max_length=50_000, default_factory=list)]


class Announce(Request):
    objects: Annotated[list[NewObject], Field(min_length=1, max_length=100)]


class Part(Answer):
    number: int
    offset: int
    size: int
    url: Annotated[str, Field(description="PUT the part's bytes here; may lead to the blob store itself")]


class Transfer(Answer):
    hash: str
    parts: Annotated[list[Part], Field(description="Parts that are still missing")]


class Transfers(Answer):
    transfers: list[Transfer]
    handover: Annotated[
        str,
        Field(
            description="A socket on this machine that takes open files instead; empty for callers elsewhere"
        ),
    ] = ""


class FileItem(Answer):
    """A file version; a folder has only a path, which ends in `/`."""

    path: str
    version: int | None = None
    size: int | None = None
    hash: str | None = None


class FileVersion(Answer):
    path: str
    version: int
    size: int
    hash: str
    creator: str
    created_at: Moment
    dropped_at: Moment | None


class Move(Request):
    source: Path
    target: Path


class Count(Answer):
    files: int


class CreateFileSet(Request):
    name: SetName
    sources: Annotated[list[Reference], Field(min_length=1, max_length=20_000)]


class SmallFile(Request):
    """A file whose bytes travel with the request itself."""

    path: Path
    content: Annotated[str, Field(max_length=400_000, description="Its bytes in base64")]


class SaveCode(Request):
    """A version of a code set: `base` without some paths, plus the files of a committed upload or small ones here."""

    name: SetName
    base: Annotated[str | None, Field(max_length=150, examples=["code-mnist:3"])] = None
    base_digest: Annotated[
        Hash | None, Field(description="What the base has to hold; otherwise it is not found")
    ] = None
    upload: Annotated[str | None, Field(max_length=40)] = None
    files: Annotated[
        list[SmallFile],
        Field(max_length=100, description="Files below 256 kB, 1 MB in all: in place of an upload"),
    ] = Field(default_factory=list)
    without: Annotated[list[Path], Field(max_length=20_000)] = Field(default_factory=list)


class FileSet(Answer):
    name: str
    version: int
    files: int
    bytes: int
    creator: str
    created_at: Moment
    sources: list[str]
    dropped_at: Moment | None
    digest: Annotated[str, Field(description="Names the content: paths, versions and bytes")] = ""


class Difference(Answer):
    path: str
    before: Annotated[int | None, Field(description="The version before; null for an added file")]
    after: Annotated[int | None, Field(description="The version after; null for a removed file")]


class Fetch(Request):
    """Addresses for the bytes of a folder, a file, a file set or a part of one."""

    ref: Reference
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=5000)] = 2000


class ObjectRange(Answer):
    hash: str
    offset: Annotated[int, Field(description="From the beginning of the range")]
    size: int


class Range(Answer):
    """GET `url` with `Range: bytes=<start>-<start + length - 1>`; the bytes hold these blobs."""

    url: str
    start: int
    length: int
    blobs: list[ObjectRange]


class Fetched(Answer):
    files: list[FileItem]
    ranges: list[Range]
    next_cursor: str | None = None


class SetTags(Request):
    kind: Kind
    ref: Reference
    tags: Annotated[Tags, Field(max_length=200, default_factory=dict)]
    remove: Annotated[list[str], Field(max_length=200, default_factory=list)]


class WriteNote(Request):
    """A note on a job, a model (its file set) or a file."""

    kind: Kind
    ref: Reference
    text: Annotated[
        str, Field(min_length=1, max_length=10_000, examples=["trained on the cleaned catalogue"])
    ]


class ArtifactNote(Answer):
    id: str
    user: Annotated[str, Field(description="Who wrote it")]
    text: str
    written_at: Moment


class Notes(Answer):
    """What people wrote, oldest first."""

    items: list[ArtifactNote]


class Artifact(Answer):
    kind: Kind
    name: str
    version: int
    creator: str
    created_at: Moment
    size: int
    hash: str | None
    job: Annotated[str | None, Field(description="The id of the job that made it")]
    job_name: Annotated[
        str | None, Field(description="What that job is called; of a job, what it is called itself")
    ] = None
    tags: Tags


class Find(Request):
    kind: Kind
    query: Annotated[
        str,
        Field(
            max_length=4000, examples=["job.creator = john and job.create_time = today and precision > 0.5"]
        ),
    ] = ""
    sort: Annotated[str, Field(max_length=70, description="A key, or -key for the largest first")] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Annotated[str | None, Field(max_length=4000)] = None


class Node(Answer):
    id: str
    name: str
    version: int
    creator: str
    created_at: Moment
    made_by: str | None
    dropped: bool
    kind: Annotated[
        str, Field(description="data, examples, model, members (of an ensemble), profile or output")
    ] = "data"
    app: Annotated[str | None, Field(description="The app whose examples or models these are")] = None
    made_by_name: Annotated[str | None, Field(description="What the job that made it is called")] = None


class Edge(Answer):
    source: str
    target: str
    action: Literal["create", "job"]
    job: str | None
    job_name: str | None = None


class Graph(Answer):
    nodes: list[Node]
    edges: list[Edge]
    next_cursor: str | None = None


class Grant(Answer):
    scope: Literal["path", "fileset"]
    pattern: str
    principal: str
    read: bool
    write: bool


class PutGrant(Request):
    scope: Literal["path", "fileset"]
    pattern: Annotated[str, Field(min_length=1, max_length=1100, examples=["/secret/", "Hotpot*"])]
    principal: Annotated[str, Field(max_length=100, examples=["user:ana", "group:vision", "everyone"])]
    read: bool = True
    write: bool = False


class SetGroup(Request):
    members: Annotated[list[str], Field(max_length=1000)]


class Group(Answer):
    name: str
    members: list[str]


class Collected(Answer):
    """What `easel gc` did, or would do."""

    uploads: int
    blobs: int
    objects: int
    bytes: int
    nodes: int


class CollectUnused(Request):
    prefix: Path = "/"
    older_than_days: Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)] = 30.0
    really: Annotated[bool, Field(description="Without this it is only told what would go")] = False


class Unused(Answer):
    files: int
    bytes: int
    examples: list[str]


class ReplayPlan(Answer):
    """What it takes to regenerate a dropped file set: jobs in order, and their time and cost last time."""

    file_set: str
    jobs: list[str]
    seconds: float | None
    cost: float | None
    unknown: Annotated[list[str], Field(description="Jobs whose time or cost is not known")]
    submitted: Annotated[list[str], Field(default_factory=list)]

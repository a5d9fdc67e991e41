"""What a blob store must do. Each sentence here has a test in `easel.testing.blobs`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from easel.errors import InvalidInput
from easel.lake.digest import Digest, digest_of

PART = 64 * 2**20
"""Bytes in one part of a large object: what is sent again after an interruption, at most."""
MAX_PARTS = 10_000  # S3's own limit
MAX_OBJECT = 5 * 2**40  # S3's own limit


@dataclass(frozen=True, slots=True)
class PackMember:
    """A small blob inside an object that packs many: bytes `[offset, offset + size)`."""

    digest: Digest
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Incoming:
    """An object on its way in, and what the sender says of it. Without members it is one blob."""

    digest: Digest
    size: int
    members: tuple[PackMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """Where an incoming object is gathered. `handle` is the store's own note, kept by the caller."""

    id: str
    size: int
    part_size: int
    handle: str = ""

    @property
    def part_count(self) -> int:
        return max(1, -(-self.size // self.part_size))

    def part_length(self, number: int) -> int:
        """Parts count from 1; all have `part_size` bytes but the last."""
        if not 1 <= number <= self.part_count:
            raise InvalidInput(f"there is no part {number}: this object has parts 1 to {self.part_count}")
        return min(self.part_size, self.size - (number - 1) * self.part_size)


@dataclass(frozen=True, slots=True)
class StoredObject:
    digest: Digest
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class StagedObject:
    id: str
    modified: datetime
    handle: str = ""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of an open file, as chunks; a store on the same disk may have the kernel copy them instead."""

    descriptor: int
    offset: int
    length: int

    def __iter__(self) -> Iterator[bytes]:
        at, end = self.offset, self.offset + self.length
        while at < end and (chunk := os.pread(self.descriptor, min(2**20, end - at), at)):
            at += len(chunk)
            yield chunk


def part_size(size: int, preferred: int) -> int:
    """Parts of the preferred size, larger only where there would be more than S3 takes."""
    if not 0 <= size <= MAX_OBJECT:
        raise InvalidInput(f"an object of {size} bytes cannot be stored: at most {MAX_OBJECT}")
    return max(preferred, -(-size // MAX_PARTS))


class BlobStore(Protocol):
    """Objects by digest, and stages in which they arrive. Safe to share between threads and processes."""

    @property
    def on_this_disk(self) -> bool:
        """Whether reading its bytes again costs no network."""

    def begin(self, stage_id: str, size: int) -> Stage:
        """Open a stage. Ids are `[a-z0-9_-]+` and never used twice."""

    def put_part(self, stage: Stage, number: int, chunks: Iterable[bytes]) -> None:
        """Store one part. Fewer or more bytes than the part has is InvalidInput, and the part stays missing.

        Sending a part again replaces it.
        """

    def parts(self, stage: Stage) -> frozenset[int]:
        """The parts that arrived whole."""

    def is_open(self, stage: Stage) -> bool:
        """Whether parts can still be put: not after the stage was promoted or discarded."""

    def part_url(self, stage: Stage, number: int, seconds: int) -> str | None:
        """An address to which the sender may PUT this part directly; None where the store has none."""

    def check(self, stage: Stage, incoming: Incoming) -> None:
        """Read what arrived and compare with the sender's word, whole and member by member.

        InvalidInput where it differs; then nothing of the stage is left.
        """

    def read_stage(self, stage: Stage, offset: int, length: int) -> bytes:
        """Bytes of a checked stage."""

    def promote(self, stage: Stage, digest: Digest) -> None:
        """Give a checked stage its name. The bytes are durable before the name is; repeating is harmless."""

    def discard(self, stage: Stage) -> None:
        """Remove a stage; one that is gone already is fine."""

    def read(self, digest: Digest, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes of an object from `offset`, to the end or `length` of them. NotFound if there is none."""

    def size(self, digest: Digest) -> int | None:
        """Returns the size of an object; None where there is no such object."""

    def find(self, digest: Digest) -> StoredObject | None:
        """An object with its age, which a new `promote` of the same bytes makes young again."""

    def read_url(self, digest: Digest, offset: int, length: int, seconds: int) -> str | None:
        """An address from which anybody may GET just this range for a while; None where the store has none.

        The reader sends `Range: bytes=<offset>-<offset + length - 1>`, which the signature covers: a pack
        may hold other people's files beside.
        """

    def delete(self, digest: Digest) -> None:
        """Remove an object; one that is gone already is fine."""

    def objects(self) -> Iterator[StoredObject]:
        """Every object, in no order."""

    def stages(self) -> Iterator[StagedObject]:
        """Every stage, in no order."""


def check_members(incoming: Incoming) -> None:
    """Members must lie inside the object, side by side, and fill it: no byte without a name."""
    end = 0
    for member in incoming.members:
        if member.offset != end or member.size < 0:
            raise InvalidInput(f"pack {incoming.digest.hex()} has a gap or overlap at byte {end}")
        end += member.size
    if incoming.members and end != incoming.size:
        raise InvalidInput(
            f"the members of pack {incoming.digest.hex()} end at {end} of {incoming.size} bytes"
        )


def exactly(chunks: Iterable[bytes], length: int) -> Iterator[bytes]:
    """Pass `length` bytes through; more or fewer is InvalidInput."""
    seen = 0
    for chunk in chunks:
        seen += len(chunk)
        if seen > length:
            raise InvalidInput(f"the part has more than its {length} bytes: send it again")
        yield chunk
    if seen < length:
        raise InvalidInput(f"the part ended after {seen} of {length} bytes: send it again")


class Puts(Protocol):
    """As much of a blob store as it takes to put something there."""

    def begin(self, stage_id: str, size: int) -> Stage: ...
    def put_part(self, stage: Stage, number: int, chunks: Iterable[bytes]) -> None: ...
    def check(self, stage: Stage, incoming: Incoming) -> None: ...
    def promote(self, stage: Stage, digest: Digest) -> None: ...


def put(store: Puts, stage_id: str, data: bytes, members: Sequence[PackMember] = ()) -> Digest:
    """Store bytes that are in memory already."""
    incoming = Incoming(digest_of(data), len(data), tuple(members))
    stage = store.begin(stage_id, incoming.size)
    view = memoryview(data)
    for number in range(1, stage.part_count + 1):
        start = (number - 1) * stage.part_size
        store.put_part(stage, number, [bytes(view[start : start + stage.part_length(number)])])
    store.check(stage, incoming)
    store.promote(stage, incoming.digest)
    return incoming.digest

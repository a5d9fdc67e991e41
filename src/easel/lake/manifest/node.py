"""Nodes of a manifest, as bytes. A node is named by the digest of its content, so equal nodes are one node.

A leaf holds entries in columns; an inner node holds references to nodes one level below. Digests do
not compress, everything else does, so they stand apart.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from easel.lake.digest import Digest, digest_of

_HEADER = struct.Struct("<BII")  # level, entries, bytes of the packed columns
_DIGEST = 32


class Entry(NamedTuple):
    """One file version in a set. `id` is the version's row in the catalogue."""

    path: str
    version: int
    id: int
    size: int
    digest: Digest


class NodeRef(NamedTuple):
    """A subtree: its first path, its node, its height, and how many files and bytes are below."""

    first: str
    digest: Digest
    level: int
    files: int
    bytes: int


class Nodes(Protocol):
    """Where nodes are kept. Nodes are immutable; adding one twice is fine."""

    def get(self, digests: Sequence[Digest]) -> list[bytes]:
        """The nodes, in the order asked for; all of them exist."""

    def add(self, digest: Digest, data: bytes) -> None:
        """Keep a node."""


def leaf(entries: Sequence[Entry]) -> tuple[Digest, bytes]:
    paths, versions, ids, sizes, digests = zip(*entries, strict=True) if entries else ((),) * 5
    numbers = array("Q", [*versions, *ids, *sizes]).tobytes()
    return _pack(0, len(entries), paths, numbers, digests)


def inner(level: int, children: Sequence[NodeRef]) -> tuple[Digest, bytes]:
    first, digests, _, files, sizes = zip(*children, strict=True)
    return _pack(level, len(children), first, array("Q", [*files, *sizes]).tobytes(), digests)


def entries_of(data: bytes) -> list[Entry]:
    _, count, paths, numbers, digests = _unpack(data)
    return [
        Entry(*row)
        for row in zip(
            paths,
            numbers[:count],
            numbers[count : 2 * count],
            numbers[2 * count :],
            (Digest(digests[i : i + _DIGEST]) for i in range(0, len(digests), _DIGEST)),
            strict=True,
        )
    ]


def children_of(data: bytes) -> list[NodeRef]:
    level, count, paths, numbers, digests = _unpack(data)
    return [
        NodeRef(
            paths[i],
            Digest(digests[i * _DIGEST : (i + 1) * _DIGEST]),
            level - 1,
            numbers[i],
            numbers[count + i],
        )
        for i in range(count)
    ]


def _pack(
    level: int, count: int, paths: Iterable[str], numbers: bytes, digests: Iterable[Digest]
) -> tuple[Digest, bytes]:
    names = "\0".join(paths).encode()
    columns = struct.pack("<I", len(names)) + names + numbers
    joined = b"".join(digests)
    # The name is that of the content, not of one release of zlib.
    name = digest_of(bytes([level]) + columns + joined)
    packed = zlib.compress(columns, 1)
    return name, _HEADER.pack(level, count, len(packed)) + packed + joined


def _unpack(data: bytes) -> tuple[int, int, list[str], array[int], bytes]:
    level, count, length = _HEADER.unpack_from(data)
    columns = zlib.decompress(data[_HEADER.size : _HEADER.size + length])
    (names,) = struct.unpack_from("<I", columns)
    paths = columns[4 : 4 + names].decode().split("\0") if count else []
    numbers = array("Q", columns[4 + names :])
    return level, count, paths, numbers, data[_HEADER.size + length :]

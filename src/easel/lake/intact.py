"""Whether stored bytes are still what their name says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from easel.errors import NotFound
from easel.lake.blobs.packs import SMALL
from easel.lake.blobs.store import BlobStore
from easel.lake.digest import Digest, digest_chunks, digest_of
from easel.records.lake import Location

_READ = 16 * 2**20
"""Neighbours of small blobs are read together, up to so many bytes."""
Placed = tuple[bytes, Location]


def damaged_among(
    blobs: BlobStore, places: Mapping[bytes, Location], read_bytes: int | None = None
) -> set[bytes]:
    """Blobs that are not where they should be, or are other bytes there.

    Their sizes are always compared. With `read_bytes` no more than that is read and hashed, the smallest first.
    """
    sizes = {name: blobs.size(Digest(name)) for name in {place.object for place in places.values()}}
    found: set[bytes] = set()
    readable: list[Placed] = []
    left = read_bytes
    for digest, place in sorted(places.items(), key=lambda item: item[1].size):
        there = sizes[place.object]
        if there is None or there < place.offset + place.size:
            found.add(digest)
        elif left is None or place.size <= left:
            left = None if left is None else left - place.size
            readable.append((digest, place))
    for run in _runs(readable):
        found |= _damaged(blobs, run)
    return found


def _runs(placed: list[Placed]) -> Iterator[list[Placed]]:
    """Small blobs that touch come together; a large one alone."""
    run: list[Placed] = []
    for digest, place in sorted(placed, key=lambda item: (item[1].object, item[1].offset)):
        if run:
            first, last = run[0][1], run[-1][1]
            touches = place.object == last.object and place.offset == last.offset + last.size
            if not touches or place.offset + place.size - first.offset > _READ:
                yield run
                run = []
        run.append((digest, place))
    if run:
        yield run


def _damaged(blobs: BlobStore, run: list[Placed]) -> set[bytes]:
    first, last = run[0][1], run[-1][1]
    try:
        chunks = blobs.read(Digest(first.object), first.offset, last.offset + last.size - first.offset)
        if len(run) == 1 and first.size >= SMALL:
            return set() if digest_chunks(chunks) == run[0][0] else {run[0][0]}
        data = memoryview(b"".join(chunks))
    except NotFound:  # taken away since its size was asked for
        return {digest for digest, _ in run}
    ours = ((digest, place.offset - first.offset, place.size) for digest, place in run)
    return {digest for digest, start, size in ours if digest_of(data[start : start + size]) != digest}

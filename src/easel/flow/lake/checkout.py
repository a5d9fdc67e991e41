"""File sets and files as bytes: for jobs on this machine, and for whoever downloads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from easel.errors import NotFound
from easel.flow.lake.file_set import entries_of
from easel.flow.lake.upload import Lake
from easel.lake.blobs.store import BlobStore
from easel.lake.cache import BlobCache
from easel.lake.digest import Digest
from easel.lake.materialise import Fetch, Materialised, Mode, materialise
from easel.records.identity import Caller
from easel.records.lake import Location
from easel.store.lake import blob_index


def read_blob(blobs: BlobStore, place: Location) -> Iterator[bytes]:
    return blobs.read(Digest(place.object), place.offset, place.size)


def locate(lake: Lake, digests: list[bytes]) -> dict[bytes, Location]:
    with lake.store.read() as tx:
        return blob_index.locate(tx, digests)


def checkout(
    lake: Lake,
    caller: Caller,
    reference: str,
    target: Path,
    *,
    folder: str = "/",
    cache: BlobCache | None = None,
    mode: Mode = Mode.SHARE,
) -> Materialised:
    """Materialise a set, or a folder of it, below `target`."""
    with lake.store.read() as tx:
        entries = entries_of(tx, caller, reference, folder)
        return materialise(entries, target, fetcher(lake), cache=cache, mode=mode)


def fetcher(lake: Lake) -> Fetch:
    def fetch(digest: Digest, size: int) -> Iterator[bytes]:
        place = locate(lake, [digest]).get(digest)
        if place is None:
            raise NotFound(f"the bytes of {digest.hex()} are not stored any more")
        return read_blob(lake.blobs, place)

    return fetch

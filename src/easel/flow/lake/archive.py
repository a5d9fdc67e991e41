"""Files as one download: a single file's bytes, or everything that a reference names as a zip, made as it is sent."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from easel.errors import InvalidInput, NotFound
from easel.flow.lake import browse
from easel.lake.blobs.store import BlobStore
from easel.lake.digest import Digest
from easel.lake.manifest.node import Entry
from easel.records.identity import Caller
from easel.records.lake import Location
from easel.store.engine import Tx

AT_ONCE = 1000
Reading = Callable[[], AbstractContextManager[Tx]]


@dataclass(frozen=True, slots=True)
class Stored:
    """A file and where its bytes lie."""

    entry: Entry
    place: Location


def one_file(tx: Tx, caller: Caller, reference: str) -> Stored:
    """The file that a reference names; InvalidInput where it names a folder or a set."""
    found, following = _page(tx, caller, reference, "", limit=2)
    if len(found) != 1 or following is not None or reference.endswith("/"):
        raise InvalidInput(f"{reference[:200]!r} is no single file: download it as a zip")
    return found[0]


def bytes_of(blobs: BlobStore, stored: Stored) -> Iterator[bytes]:
    place = stored.place
    return blobs.read(Digest(place.object), place.offset, place.size)


def zip_of(
    reading: Reading, blobs: BlobStore, caller: Caller, reference: str, now: datetime
) -> Iterator[bytes]:
    """A zip of all files that a reference names. What is wrong with the reference is said before the first byte."""
    with reading() as tx:
        first, following = _page(tx, caller, reference, "")
    if not first:
        raise NotFound(f"there are no files in {reference[:200]!r}")

    def pages() -> Iterator[Sequence[Stored]]:
        found, cursor = first, following
        yield found
        while cursor is not None:
            with reading() as tx:
                found, cursor = _page(tx, caller, reference, cursor)
            yield found

    return _zipped(pages(), blobs, now)


def _page(
    tx: Tx, caller: Caller, reference: str, after: str, limit: int = AT_ONCE
) -> tuple[list[Stored], str | None]:
    listing = browse.list_files(tx, caller, reference, recursive=True, limit=limit, after=after, whole=True)
    entries = [item for item in listing.items if isinstance(item, Entry)]
    places = browse.locate(tx, entries)
    return [Stored(entry, places[entry.digest]) for entry in entries], listing.next_cursor


class _Sink:
    """What the zip writer has written since it was last asked."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Does nothing: no byte is kept back."""

    def close(self) -> None:
        """Does nothing: no file is open."""

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _zipped(pages: Iterator[Sequence[Stored]], blobs: BlobStore, now: datetime) -> Iterator[bytes]:
    sink = _Sink()
    moment = (now.year, now.month, now.day, now.hour, now.minute, now.second)
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for page in pages:
            for stored in page:
                about = zipfile.ZipInfo(stored.entry.path.lstrip("/"), moment)
                about.compress_type = zipfile.ZIP_DEFLATED
                about.external_attr = 0o644 << 16
                with packed.open(about, "w", force_zip64=True) as into:
                    for chunk in bytes_of(blobs, stored):
                        into.write(chunk)
                        yield sink.take()
                yield sink.take()
    yield sink.take()

"""`easel doctor` on the lake: bytes that are damaged, and rows that name what is not there."""

from __future__ import annotations

from dataclasses import dataclass

from easel.flow.lake.upload import Lake
from easel.lake.intact import damaged_among
from easel.records.lake import Location
from easel.store import examine
from easel.store.lake import blob_index


@dataclass(frozen=True, slots=True)
class Examined:
    """`damaged` maps blobs to file versions that have them; `orphans` kinds of wrong rows to examples."""

    blobs: int
    size: int
    read: int
    damaged: dict[bytes, list[str]]
    orphans: dict[str, list[str]]


def examine_lake(lake: Lake, read_bytes: int | None = None, *, forget: bool = False) -> Examined:
    """Compare every blob with its name: its size always, its bytes up to `read_bytes` in all (None: all).

    With `forget` the places of damaged ones are forgotten, so that the next upload of these bytes is stored.
    """
    damaged: dict[bytes, Location] = {}
    count = size = read = 0
    after = b""
    while True:
        with lake.store.read() as tx:
            places = examine.places_after(tx, after)
        if not places:
            break
        here = sum(place.size for place in places.values())
        left = None if read_bytes is None else max(read_bytes - read, 0)
        damaged |= {digest: places[digest] for digest in damaged_among(lake.blobs, places, left)}
        count, size, after = count + len(places), size + here, max(places)
        read += here if left is None else min(here, left)
    with lake.store.read() as tx:
        # What was moved or given up while it was read is not damaged.
        now = blob_index.locate(tx, sorted(damaged))
        damaged = {digest: place for digest, place in damaged.items() if now.get(digest) == place}
        named = {digest: examine.files_of(tx, digest) for digest in sorted(damaged)}
    wrong = examine.orphans(lake.store)
    if forget and damaged:
        with lake.store.write() as tx:
            blob_index.forget_places(tx, damaged)
    return Examined(count, size, read, named, wrong)

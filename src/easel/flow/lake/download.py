"""How the bytes of files are fetched: neighbours in one object come as one range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from easel.flow.lake import browse
from easel.lake.blobs.packs import PACK
from easel.lake.blobs.store import PackMember
from easel.lake.digest import Digest
from easel.lake.manifest.node import Entry
from easel.records.identity import Caller
from easel.records.lake import Location
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Span:
    """`length` bytes of an object from `start`; the offsets of `blobs` count from `start`."""

    object: Digest
    start: int
    length: int
    blobs: Sequence[PackMember]


@dataclass(frozen=True, slots=True)
class FetchPlan:
    entries: Sequence[Entry]
    spans: Sequence[Span]
    next_cursor: str | None


def plan(tx: Tx, caller: Caller, reference: str, limit: int, after: str) -> FetchPlan:
    """What a reference names, a page of it, and the ranges that hold the bytes."""
    listing = browse.list_files(tx, caller, reference, recursive=True, limit=limit, after=after, whole=True)
    entries = [item for item in listing.items if isinstance(item, Entry)]
    places = browse.locate(tx, entries)
    return FetchPlan(entries, list(join(places)), listing.next_cursor)


def join(places: Mapping[bytes, Location]) -> Iterable[Span]:
    """Join blobs that touch. Bytes that were not asked for are never inside a span: they may not be ours."""
    ordered = sorted(places.items(), key=lambda item: (item[1].object, item[1].offset))
    run: list[tuple[bytes, Location]] = []
    for digest, place in ordered:
        if run:
            last = run[-1][1]
            touches = place.object == last.object and place.offset == last.offset + last.size
            if not touches or place.offset + place.size - run[0][1].offset > PACK:
                yield _span(run)
                run = []
        run.append((digest, place))
    if run:
        yield _span(run)


def _span(run: Sequence[tuple[bytes, Location]]) -> Span:
    first, last = run[0][1], run[-1][1]
    blobs = [PackMember(Digest(d), p.offset - first.offset, p.size) for d, p in run]
    return Span(Digest(first.object), first.offset, last.offset + last.size - first.offset, blobs)

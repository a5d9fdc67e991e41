"""`easel gc`: find what nobody needs, and remove it without ever taking what somebody relies on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from easel.flow.lake import upload
from easel.flow.lake.file_set import own_nodes
from easel.flow.lake.upload import Lake
from easel.lake.blobs.packs import close_up
from easel.lake.blobs.store import Incoming, Stage
from easel.lake.digest import digest_of
from easel.lake.intact import damaged_among
from easel.lake.manifest.node import NodeRef, Nodes, children_of, entries_of
from easel.lake.paths import folder_path
from easel.records.identity import Caller
from easel.records.lake import Location
from easel.store.engine import Tx
from easel.store.lake import artifacts, blob_index, file_sets, lineage, nodes, uploads

GRACE = timedelta(hours=24)
"""What is younger may belong to work that is under way."""
ABANDONED = timedelta(days=3)
"""An upload that nobody touched for so long is not resumed any more."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Collected:
    uploads: int
    blobs: int
    objects: int
    bytes: int
    nodes: int


def collect(lake: Lake, grace: timedelta = GRACE, abandoned_after: timedelta = ABANDONED) -> Collected:
    """Abandoned uploads, blobs that nothing names, objects without blobs, half-empty packs, lost nodes."""
    now = lake.store.clock.now()
    before = now - grace
    ended = _end_abandoned(lake, now - abandoned_after)
    _discard_lost_stages(lake, before)
    _repack(lake, before)
    with lake.store.write() as tx:
        blob_index.hold_still(tx)
        forgotten = blob_index.forget_unreferenced(tx, before)
        blob_index.doom_empty(tx, before)
    objects, size = _delete_doomed(lake, before)
    more, more_size = _delete_unknown(lake, before)
    return Collected(ended, forgotten, objects + more, size + more_size, _forget_nodes(lake, before))


def _end_abandoned(lake: Lake, before: datetime) -> int:
    count = 0
    while True:
        with lake.store.write() as tx:
            found = uploads.abandoned(tx, before)
            stages = [stage for session in found for stage in upload.end_and_forget(tx, session)]
            for session in found:
                tx.emit("upload.abandoned", session.id, project_id=session.project_id, body={})
        for stage in stages:
            lake.blobs.discard(stage)
        if not found:
            return count
        count += len(found)


def _discard_lost_stages(lake: Lake, before: datetime) -> None:
    """Stages of sessions that ended, or whose session was never written down."""
    for some in _batches(s for s in lake.blobs.stages() if s.modified < before):
        with lake.store.read() as tx:
            used = uploads.known_stages(tx, [stage.id for stage in some])
        for lost in some:
            if lost.id not in used:
                lake.blobs.discard(Stage(lost.id, 0, 1, lost.handle))


def _delete_doomed(lake: Lake, before: datetime) -> tuple[int, int]:
    """The bytes go before the rows. Bytes that came again meanwhile stay: an agent put them, and a row will follow."""
    count = size = 0
    while True:
        with lake.store.write() as tx:
            # The rows are held: whoever wants to claim one of these objects waits, then sends it anew.
            doomed = blob_index.take_doomed(tx)
            for digest in doomed:
                found = lake.blobs.find(digest)
                if found is not None and found.modified < before:
                    lake.blobs.delete(digest)
                    count, size = count + 1, size + found.size
            blob_index.forget_objects(tx, doomed)
        if not doomed:
            return count, size


def _delete_unknown(lake: Lake, before: datetime) -> tuple[int, int]:
    """Objects that no row names: a crash came between the bytes and the row."""
    count = size = 0
    for some in _batches(o for o in lake.blobs.objects() if o.modified < before):
        with lake.store.write() as tx:
            known = blob_index.known_objects(tx, [o.digest for o in some])
            for lost in some:
                if lost.digest not in known:
                    lake.blobs.delete(lost.digest)
                    count, size = count + 1, size + lost.size
    return count, size


def _repack(lake: Lake, before: datetime) -> None:
    """Packs of which little is named any more are written anew without the rest."""
    with lake.store.write() as tx:
        blob_index.hold_still(tx)
        blob_index.forget_unreferenced(tx, before)
    with lake.store.read() as tx:
        packs = [
            (pack, blob_index.members_of(tx, pack)) for pack in blob_index.wasteful_packs(tx, before, 100)
        ]
    for pack, members in packs:
        if damaged_among(lake.blobs, {m.digest: Location(pack, m.offset, m.size) for m in members}):
            continue  # `easel doctor` tells of it; good bytes that are sent again are stored elsewhere
        data = b"".join(chunk for m in members for chunk in lake.blobs.read(pack, m.offset, m.size))
        smaller = Incoming(digest_of(data), len(data), close_up(members))
        stage = lake.blobs.begin(f"repack-{pack.hex()[:40]}", smaller.size)
        lake.blobs.put_part(stage, 1, [data])
        lake.blobs.check(stage, smaller)
        with lake.store.write() as tx:
            blob_index.claim(tx, smaller)
        lake.blobs.promote(stage, smaller.digest)
        with lake.store.write() as tx:
            blob_index.arrived(tx, smaller)
            blob_index.move_blobs(tx, pack, smaller)


def _forget_nodes(lake: Lake, before: datetime) -> int:
    with lake.store.read() as tx:
        old = nodes.old_nodes(tx, before)
        lost = old - _reachable(own_nodes(tx), file_sets.all_roots(tx))
    with lake.store.write() as tx:
        return nodes.forget_nodes(tx, sorted(lost), before)


def _reachable(store: Nodes, roots: Iterable[NodeRef]) -> set[bytes]:
    seen: set[bytes] = set()
    for level, refs in _levels(store, roots):
        seen.update(ref.digest for ref in refs if ref.level == level)
    return seen


def _levels(store: Nodes, roots: Iterable[NodeRef]) -> Iterator[tuple[int, list[NodeRef]]]:
    """Each distinct node of some trees once, from the top level down."""
    waiting = {ref.digest: ref for ref in roots}
    level = max((ref.level for ref in waiting.values()), default=-1)
    while level >= 0:
        here = [ref for ref in waiting.values() if ref.level == level]
        yield level, here
        waiting = {digest: ref for digest, ref in waiting.items() if ref.level < level}
        if level > 0:
            for some in _batches(here, 100):
                for data in store.get([ref.digest for ref in some]):
                    waiting.update((child.digest, child) for child in children_of(data))
        level -= 1


@dataclass(frozen=True, slots=True)
class Unused:
    files: int
    bytes: int
    examples: tuple[str, ...]


def drop_unused(tx: Tx, caller: Caller, prefix: str, older_than: timedelta, *, really: bool) -> Unused:
    """Give up file versions below `prefix` that no job used and no standing file set refers to.

    A path whose latest version goes is marked deleted too. The rows stay, so numbers have no gaps; the bytes
    go with the next `collect`.
    """
    folder, before = folder_path(prefix), tx.now - older_than
    kept = referenced(tx, caller)
    found = [a for a in artifacts.old_files(tx, caller.project_id, folder, before) if a.id not in kept]
    if really and found:
        artifacts.drop_bytes(tx, [a.id for a in found])
        artifacts.delete_dropped(tx, caller.project_id, [a.name for a in found])
        body = {"files": len(found)}
        tx.emit("files.dropped", prefix, project_id=caller.project_id, actor=caller.user.id, body=body)
    examples = tuple(f"{a.name}:{a.version}" for a in found[:20])
    return Unused(len(found), sum(a.size for a in found), examples)


def referenced(tx: Tx, caller: Caller, besides: int | None = None) -> set[int]:
    """File versions that some standing set, or a set that a job used, refers to; `besides` one set."""
    used = lineage.used_by_jobs(tx, caller.project_id)
    standing = {made.artifact.id for made, _ in file_sets.all_versions(tx, caller.project_id)}
    roots = [
        root
        for made, root in file_sets.all_versions(tx, caller.project_id, deleted=True)
        if made.artifact.id in used | standing
        and made.artifact.id != besides
        and made.artifact.dropped_at is None
    ]
    store, found = own_nodes(tx), set[int]()
    for level, refs in _levels(store, roots):
        if level == 0:
            for some in _batches(refs, 100):
                for data in store.get([ref.digest for ref in some]):
                    found.update(entry.id for entry in entries_of(data))
    return found


def _batches(items: Iterable[T], length: int = 500) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(islice(iterator, length)):
        yield some

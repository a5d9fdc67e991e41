"""Which bytes there are and where: objects of the blob store, and the blobs in them.

The life of an object is arriving → present → doomed → gone. A sender claims an object before it is
given its name in the blob store, and the collector deletes bytes only of doomed objects while it holds
their rows, so neither can take away what the other relies on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, delete, exists, func, not_, select, update

from easel.ids import ProjectId
from easel.lake.access import Rights
from easel.lake.blobs.store import Incoming, PackMember
from easel.lake.digest import Digest
from easel.records.lake import Kind, Location
from easel.store.digest_in import MOST, digest_in
from easel.store.engine import Tx
from easel.store.lake.artifacts import allowed
from easel.store.schema.lake import artifacts, blobs, objects, upload_items, uploads
from easel.store.upsert import chunks, insert_or, lock

_PRESENT = and_(blobs.c.object == objects.c.digest, objects.c.state == "present")


def locate(tx: Tx, digests: Sequence[bytes]) -> dict[bytes, Location]:
    """Where blobs are; what is not there is left out."""
    found: dict[bytes, Location] = {}
    for some in chunks(digests, MOST):
        query = select(blobs.c.digest, blobs.c.object, blobs.c.offset, blobs.c.size).join(objects, _PRESENT)
        for digest, *place in tx.execute(query.where(digest_in(tx, blobs.c.digest, some))):
            found[bytes(digest)] = Location(bytes(place[0]), *place[1:])
    return found


def held_by(tx: Tx, project_id: ProjectId, rights: Rights, digests: Sequence[bytes]) -> set[bytes]:
    """Bytes that somebody with these rights can read in this project already.

    Nothing else is answered: whether another project has some bytes must not be found out by asking.
    """
    found: set[bytes] = set()
    for some in chunks(digests, MOST):
        query = (
            select(artifacts.c.digest)
            .join(blobs, blobs.c.digest == artifacts.c.digest)
            .join(objects, _PRESENT)
            .where(
                artifacts.c.project_id == project_id,
                artifacts.c.kind == Kind.FILE,
                digest_in(tx, artifacts.c.digest, some),
                artifacts.c.dropped_at.is_(None),
                allowed(artifacts.c.name, rights.paths),
            )
            .distinct()
        )
        found.update(bytes(row.digest) for row in tx.execute(query))
    return found


def claim(tx: Tx, incoming: Incoming) -> None:
    """Announce that an object is about to be named; it is nobody's garbage from now on."""
    made = insert_or(tx, objects).values(
        digest=incoming.digest, size=incoming.size, state="arriving", claimed_at=tx.now
    )
    state = func.replace(objects.c.state, "doomed", "arriving")
    tx.execute(
        made.on_conflict_do_update(
            index_elements=["digest"], set_={"state": state, "claimed_at": made.excluded.claimed_at}
        )
    )


def arrived(tx: Tx, incoming: Incoming) -> None:
    """The object has its name: its blobs may be read from now on."""
    tx.execute(update(objects).where(objects.c.digest == incoming.digest).values(state="present"))
    members = incoming.members or (PackMember(incoming.digest, 0, incoming.size),)
    # A blob whose former object is going away moves here; otherwise the first place stays.
    standing = exists().where(objects.c.digest == blobs.c.object, objects.c.state == "present")
    made = insert_or(tx, blobs)
    made = made.on_conflict_do_update(
        index_elements=["digest"],
        set_={"object": made.excluded.object, "offset": made.excluded.offset},
        where=not_(standing),
    )
    # One statement many times: a statement of a thousand rows would be compiled anew for each thousand.
    rows = [
        {"digest": m.digest, "size": m.size, "object": incoming.digest, "offset": m.offset} for m in members
    ]
    tx.execute(made, rows)


def hold_still(tx: Tx) -> None:
    """Keeps the collector from forgetting anything until this transaction ends: what `locate` found stays found."""
    lock(tx, "blobs")


def keep_known(tx: Tx, digests: Sequence[bytes]) -> set[bytes]:
    """Blobs that are stored already, by whomever; the collector leaves them alone from now on, as if just claimed."""
    hold_still(tx)
    found = locate(tx, digests)
    for some in chunks(list({place.object for place in found.values()})):
        tx.execute(update(objects).where(objects.c.digest.in_(some)).values(claimed_at=tx.now))
    return set(found)


def forget_places(tx: Tx, places: Mapping[bytes, Location]) -> None:
    """Forgets where damaged bytes were: whoever brings them again says where they are."""
    for digest, place in sorted(places.items()):
        here = (blobs.c.digest == digest, blobs.c.object == place.object, blobs.c.offset == place.offset)
        tx.execute(delete(blobs).where(*here))


def forget_unreferenced(tx: Tx, before: datetime) -> int:
    """Drop the rows of blobs that no file version and no pending upload names; objects claimed since stay."""
    old = exists().where(objects.c.digest == blobs.c.object, objects.c.claimed_at < before)
    named = exists().where(artifacts.c.digest == blobs.c.digest, artifacts.c.dropped_at.is_(None))
    waiting = exists().where(
        upload_items.c.digest == blobs.c.digest,
        upload_items.c.upload_id == uploads.c.id,
        uploads.c.state == "pending",
    )
    return tx.execute(delete(blobs).where(old, not_(named), not_(waiting))).rowcount


def doom_empty(tx: Tx, before: datetime) -> int:
    """Objects in which no blob is left are doomed; so are those that never arrived."""
    holds = exists().where(blobs.c.object == objects.c.digest)
    return tx.execute(
        update(objects)
        .where(objects.c.state != "doomed", objects.c.claimed_at < before, not_(holds))
        .values(state="doomed")
    ).rowcount


def take_doomed(tx: Tx, limit: int = 500) -> list[Digest]:
    """Doomed objects, whose rows are held until the transaction ends: a claim waits meanwhile."""
    query = select(objects.c.digest).where(objects.c.state == "doomed")
    query = query.order_by(objects.c.digest).limit(limit).with_for_update()
    return [Digest(bytes(row.digest)) for row in tx.execute(query)]


def forget_objects(tx: Tx, digests: Iterable[bytes]) -> None:
    for some in chunks(list(digests)):
        tx.execute(delete(objects).where(objects.c.digest.in_(some)))


def known_objects(tx: Tx, digests: Sequence[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for some in chunks(digests):
        query = select(objects.c.digest).where(objects.c.digest.in_(some))
        found.update(bytes(row.digest) for row in tx.execute(query))
    return found


def all_objects(tx: Tx) -> Iterator[Digest]:
    """Every object whose bytes should be there."""
    for (digest,) in tx.execute(select(objects.c.digest).where(objects.c.state == "present")):
        yield Digest(bytes(digest))


def wasteful_packs(tx: Tx, before: datetime, limit: int) -> list[Digest]:
    """Old packs of which less than half is still named by a blob."""
    live = select(blobs.c.object, func.sum(blobs.c.size).label("bytes")).group_by(blobs.c.object).subquery()
    query = (
        select(objects.c.digest)
        .join(live, live.c.object == objects.c.digest)
        .where(
            objects.c.state == "present",
            objects.c.claimed_at < before,
            live.c.bytes * 2 < objects.c.size,
        )
        .limit(limit)
    )
    return [Digest(bytes(row.digest)) for row in tx.execute(query)]


def members_of(tx: Tx, object_digest: Digest) -> list[PackMember]:
    query = select(blobs.c.digest, blobs.c.offset, blobs.c.size).where(blobs.c.object == object_digest)
    return [PackMember(Digest(bytes(d)), o, s) for d, o, s in tx.execute(query.order_by(blobs.c.offset))]


def move_blobs(tx: Tx, source: Digest, target: Incoming) -> None:
    """The blobs of one object are read from another from now on."""
    for member in target.members or (PackMember(target.digest, 0, target.size),):
        tx.execute(
            update(blobs)
            .where(blobs.c.digest == member.digest, blobs.c.object == source)
            .values(object=target.digest, offset=member.offset)
        )

"""Upload sessions: files and bytes are announced, sent, checked, and committed as one.

    start → add_files → announce → (parts are sent) → finish_object → commit

Every step may be repeated: after a crash of either side the sender asks what is wanted and goes on.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from easel.declare.roles import Role
from easel.errors import Conflict, InvalidInput, NotFound, QuotaExhausted, TooLarge
from easel.flow.quotas import QuotaAsk, check_quotas, has_quotas
from easel.ids import UploadId
from easel.lake.blobs.packs import PACK, SMALL, close_up
from easel.lake.blobs.store import BlobStore, Incoming, Stage, check_members
from easel.lake.digest import Digest, digest_of
from easel.lake.intact import damaged_among
from easel.lake.manifest.node import Entry
from easel.lake.paths import file_path
from easel.records.identity import Caller
from easel.records.lake import Upload, UploadItem, UploadState
from easel.store.engine import Store, Tx
from easel.store.lake import artifacts, blob_index, uploads
from easel.store.lake.grants import rights_of
from easel.store.upsert import lock

MAX_FILES = 20_000
"""Files in one call of `add_files`; a session may have any number of calls."""
_MAX_PACK = PACK + SMALL
CHECKED_BYTES = 256 * 2**20
"""How much of what is stored is read again before a sender is told that it need not be sent."""
MAX_OPEN = 500
"""Uploads that one user may have open in a project."""


@dataclass(frozen=True, slots=True)
class Lake:
    """Where rows and bytes are."""

    store: Store
    blobs: BlobStore


@dataclass(frozen=True, slots=True)
class AnnouncedObject:
    """What is still to be sent of an object: none of its parts when it is stored."""

    incoming: Incoming
    stage: Stage
    missing: Sequence[int]


def start(tx: Tx, caller: Caller, made_by: int | None = None) -> Upload:
    """Open a session. `made_by` is the artifact of the job whose output this is."""
    if made_by is None and uploads.count_open(tx, caller.project_id, caller.user.id) >= MAX_OPEN:
        raise QuotaExhausted(
            f"you have {MAX_OPEN} uploads open in this project: commit or abort some of them"
        )
    upload = Upload(
        UploadId(tx.mint("upl")),
        caller.project_id,
        caller.user.id,
        UploadState.PENDING,
        tx.now,
        tx.now,
        None,
        made_by,
    )
    uploads.add_upload(tx, upload)
    _tell(tx, caller, "upload.started", upload)
    return upload


def add_files(
    tx: Tx,
    caller: Caller,
    upload_id: str,
    items: Sequence[UploadItem],
    damaged: Collection[bytes] = frozenset(),
) -> list[Digest]:
    """Add files; returns the digests of those whose bytes must be sent: `damaged` ones also if they are stored."""
    if len(items) > MAX_FILES:
        raise TooLarge(f"{len(items)} files at once: send at most {MAX_FILES} in one call")
    upload = _pending(tx, caller, upload_id)
    rights = rights_of(tx, caller)
    checked: dict[str, UploadItem] = {}
    for item in items:
        path = file_path(item.path)
        if path in checked:
            raise InvalidInput(f"{path!a} is named twice (perhaps in two spellings): name it once")
        rights.need_write(path)
        checked[path] = replace(item, path=path)
    if upload.made_by is None:
        check_quotas(tx, caller, QuotaAsk(bytes=sum(item.size for item in items)))
    digests = list({i.digest for i in items})
    held = blob_index.held_by(tx, caller.project_id, rights, digests) - set(damaged)
    held |= uploads.held_in(tx, upload.id, digests)
    uploads.put_items(tx, upload.id, list(checked.values()), held)
    uploads.touch(tx, upload.id)
    return [Digest(d) for d in dict.fromkeys(i.digest for i in items) if d not in held]


def damaged_of(lake: Lake, caller: Caller, items: Sequence[UploadItem]) -> set[bytes]:
    """Returns of what the caller's project holds already the bytes that are no longer what their name says.

    Sizes of all are compared; of the bytes as many are read as are quickly read. `easel doctor` reads the rest, and
    those of a bucket, which has checksums of its own.
    """
    if not lake.blobs.on_this_disk:
        return set()
    digests = list({item.digest for item in items})
    with lake.store.read() as tx:
        held = blob_index.held_by(tx, caller.project_id, rights_of(tx, caller), digests)
        places = blob_index.locate(tx, sorted(held))
    return damaged_among(lake.blobs, places, CHECKED_BYTES)


def announce(
    lake: Lake, caller: Caller, upload_id: str, objects: Sequence[Incoming]
) -> list[AnnouncedObject]:
    """Say how the wanted bytes will come: alone, or packed. Saying it again tells what is missing."""
    found = []
    for incoming in objects:
        with lake.store.read() as tx:
            upload = _pending(tx, caller, upload_id)
            known = uploads.find_object(tx, upload.id, incoming.digest)
            if known is None:
                _check_announced(tx, upload.id, incoming)
        if known is not None and not known[2] and not lake.blobs.is_open(known[0]):
            # A crash came after the bytes got their name and before the row did: send this object again.
            with lake.store.write() as tx:
                uploads.forget_object(tx, known[0].id)
            known = None
        if known is None:
            known = _open_stage(lake, upload, incoming)
        stage, agreed, stored = known
        arrived = frozenset(range(1, stage.part_count + 1)) if stored else lake.blobs.parts(stage)
        missing = [n for n in range(1, stage.part_count + 1) if n not in arrived]
        found.append(AnnouncedObject(agreed, stage, missing))
    return found


def _open_stage(lake: Lake, upload: Upload, incoming: Incoming) -> tuple[Stage, Incoming, bool]:
    stage = lake.blobs.begin(f"{upload.id}-{secrets.token_hex(6)}", incoming.size)
    with lake.store.write() as tx:
        is_new = uploads.add_object(tx, upload.id, stage, incoming)
        uploads.touch(tx, upload.id)
        known = uploads.find_object(tx, upload.id, incoming.digest)
    assert known is not None
    if not is_new:  # announced twice at once: the other stage counts
        lake.blobs.discard(stage)
    return known


def _check_announced(tx: Tx, upload_id: UploadId, incoming: Incoming) -> None:
    """Refuses bytes that no file of the session needs."""
    check_members(incoming)
    if incoming.members and incoming.size > _MAX_PACK:
        raise TooLarge(f"a pack of {incoming.size} bytes: send packs of at most {_MAX_PACK}")
    expected = {m.digest: m.size for m in incoming.members} or {incoming.digest: incoming.size}
    asked = uploads.asks_for(tx, upload_id, list(expected))
    for digest, size in expected.items():
        if asked.get(digest) != size:
            raise InvalidInput(f"no file of this upload has {size} bytes that hash to {digest.hex()}")


def receive_part(lake: Lake, stage_id: str, number: int, chunks: Iterable[bytes]) -> None:
    """Bytes that came through this server rather than straight to the blob store."""
    with lake.store.read() as tx:
        stage = uploads.find_stage(tx, stage_id)
    if stage is None:
        raise NotFound("this upload has ended: start a new one")
    lake.blobs.put_part(stage, number, chunks)


def finish_object(lake: Lake, caller: Caller, upload_id: str, digest: Digest) -> None:
    """Check what arrived, store it under its name, and count its blobs as held by this session."""
    with lake.store.read() as tx:
        upload = _pending(tx, caller, upload_id)
        known = uploads.find_object(tx, upload.id, digest)
        if known is None:
            raise NotFound(f"no object {digest.hex()} was announced in this upload")
        stage, incoming, stored = known
        parts = [m.digest for m in incoming.members] or [incoming.digest]
        places = blob_index.locate(tx, parts)
    if stored:
        return
    try:
        lake.blobs.check(stage, incoming)
    except InvalidInput:
        with lake.store.write() as tx:
            forgotten = uploads.find_stage(tx, stage.id) is not None and not lake.blobs.parts(stage)
            if forgotten:
                uploads.forget_object(tx, stage.id)
        if forgotten:
            lake.blobs.discard(stage)
        raise
    # Whoever sends what is stored already either may not know that it is, or heals it.
    damaged = damaged_among(lake.blobs, places) if lake.blobs.on_this_disk else set()
    elsewhere = places.keys() - damaged if incoming.members else set()
    kept = _leave_out(lake.blobs, stage, incoming, elsewhere)
    if kept is not None:
        final, to_store = kept
        with lake.store.write() as tx:
            blob_index.claim(tx, to_store)
        lake.blobs.promote(final, to_store.digest)
    with lake.store.write() as tx:
        blob_index.forget_places(tx, {digest: places[digest] for digest in damaged})
        if kept is not None:
            blob_index.arrived(tx, kept[1])
        uploads.mark_stored(tx, stage.id)
        uploads.mark_held(tx, upload.id, parts)
        uploads.touch(tx, upload.id)
    lake.blobs.discard(stage)


def _leave_out(
    blobs: BlobStore, stage: Stage, incoming: Incoming, known: Set[bytes]
) -> tuple[Stage, Incoming] | None:
    """Equal bytes are stored once: what is stored already is left out of a pack; None if nothing is left."""
    if not known:
        return stage, incoming
    fresh = [m for m in incoming.members if m.digest not in known]
    if not fresh:
        return None
    data = b"".join(blobs.read_stage(stage, m.offset, m.size) for m in fresh)
    smaller = Incoming(digest_of(data), len(data), close_up(fresh))
    place = blobs.begin(f"{stage.id}-less", smaller.size)
    blobs.put_part(place, 1, [data])
    blobs.check(place, smaller)
    return place, smaller


def commit(tx: Tx, caller: Caller, upload_id: str) -> Upload:
    """All files get their next version at once. Committing again changes nothing."""
    lock(tx, f"lake {caller.project_id}")  # sessions of a project commit one after another
    upload = _own(tx, caller, upload_id)
    if upload.state is UploadState.COMMITTED:
        return upload
    upload = _pending(tx, caller, upload_id)
    missing = uploads.missing(tx, upload.id)
    if missing:
        raise Conflict(f"the bytes of {', '.join(missing)} have not been sent: send them, then commit")
    _check_names(tx, caller, upload)
    if upload.made_by is None and has_quotas(
        tx, caller
    ):  # files that came in several calls; results are never refused
        check_quotas(tx, caller, QuotaAsk(bytes=uploads.progress(tx, upload.id)[1]))
    if not uploads.end(tx, upload.id, UploadState.COMMITTED):
        raise Conflict("the upload was ended by another call: look at it again")
    count = uploads.number(tx, upload)
    _tell(tx, caller, "upload.committed", upload, {"files": count})
    return _own(tx, caller, upload_id)


def _check_names(tx: Tx, caller: Caller, upload: Upload) -> None:
    """Nobody's rights changed meanwhile, and no name is a file and a folder at once."""
    rights, paths = rights_of(tx, caller), uploads.paths(tx, upload.id)
    if not paths:
        raise InvalidInput("this upload has no files: add some, or abort it")
    folders: set[str] = set()
    for path in paths:
        rights.need_write(path)
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    clash = (
        next((path for path in paths if path in folders), None)
        or artifacts.a_file_among(tx, caller.project_id, sorted(folders))
        or uploads.a_folder_among(tx, upload.id, caller.project_id)
    )
    if clash:
        raise Conflict(f"{clash} would be a file and a folder at once: choose another name, or delete it")


def abort(lake: Lake, caller: Caller, upload_id: str) -> Upload:
    """End a session without a trace: no version number is taken. Aborting again changes nothing."""
    with lake.store.write() as tx:
        upload = _own(tx, caller, upload_id)
        if upload.state is UploadState.COMMITTED:
            raise Conflict("the upload is committed: delete its files instead")
        stages = end_and_forget(tx, upload)
        _tell(tx, caller, "upload.aborted", upload)
        upload = _own(tx, caller, upload_id)
    for stage in stages:
        lake.blobs.discard(stage)
    return upload


def end_and_forget(tx: Tx, upload: Upload) -> list[Stage]:
    """Abort in the database; returns the stages whose bytes are to be discarded."""
    uploads.end(tx, upload.id, UploadState.ABORTED)
    return [stage for stage, _, stored in uploads.objects_of(tx, upload.id) if not stored]


def wanted(tx: Tx, caller: Caller, upload_id: str, after: bytes, limit: int) -> list[tuple[Digest, int]]:
    """Bytes that a resumed session still has to send, a page of them."""
    upload = _pending(tx, caller, upload_id)
    uploads.touch(tx, upload.id)
    return uploads.wanted(tx, upload.id, after, limit)


def get(tx: Tx, caller: Caller, upload_id: str) -> Upload:
    return _own(tx, caller, upload_id)


def pending(tx: Tx, caller: Caller) -> list[Upload]:
    """Returns the caller's sessions that are still open, the newest first."""
    found = uploads.list_uploads(tx, caller.project_id, UploadState.PENDING, 200)
    return [each for each in found if each.creator == caller.user.id]


def progress(tx: Tx, upload: Upload) -> tuple[int, int, int]:
    """Returns how many files and bytes a session has, and how many of the bytes have arrived."""
    return uploads.progress(tx, upload.id)


def committed_page(tx: Tx, caller: Caller, upload_id: str, after: str, limit: int) -> list[Entry]:
    """Returns versions that a committed session made, by path from `after` on."""
    session = get(tx, caller, upload_id)
    found = uploads.committed_page(tx, session.id, after, limit)
    return [
        Entry(path, version, key, size, Digest(bytes(digest))) for path, version, key, size, digest in found
    ]


def added(tx: Tx, upload: Upload) -> Iterator[Entry]:
    """The file versions of a committed session, by path."""
    return (Entry(p, v, i, s, Digest(bytes(d))) for p, v, i, s, d in uploads.committed(tx, upload.id))


def _own(tx: Tx, caller: Caller, upload_id: str) -> Upload:
    upload = uploads.find_upload(tx, caller.project_id, upload_id)
    if upload is None or (upload.creator != caller.user.id and caller.role is not Role.ADMIN):
        raise NotFound(f"you have no upload {upload_id[:80]!r}: start a new one")
    return upload


def _pending(tx: Tx, caller: Caller, upload_id: str) -> Upload:
    upload = _own(tx, caller, upload_id)
    if upload.state is not UploadState.PENDING:
        raise Conflict(f"the upload is {upload.state}: start a new one")
    return upload


def _tell(tx: Tx, caller: Caller, kind: str, upload: Upload, body: dict[str, object] | None = None) -> None:
    tx.emit(kind, upload.id, project_id=upload.project_id, actor=caller.user.id, body=body or {})

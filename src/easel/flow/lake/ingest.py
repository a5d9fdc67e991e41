"""Upload without announcing: from this very machine (workers beside the blob store), or with the request itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from easel.errors import EaselError, TooLarge
from easel.flow.lake import upload
from easel.flow.lake.upload import AnnouncedObject, Lake
from easel.ids import UploadId
from easel.lake.blobs.packs import SMALL, plan_packs
from easel.lake.blobs.store import Incoming
from easel.lake.digest import Digest, digest_chunks, digest_file, digest_of
from easel.lake.folder import LocalFile, scan
from easel.records.identity import Caller
from easel.records.lake import Upload, UploadItem

_CHUNK = 1 << 20
MAX_CARRIED = 1 << 20
"""Bytes that one request may carry along in place of an upload."""


def ingest_folder(
    lake: Lake, caller: Caller, source: Path, target: str, *, made_by: int | None = None
) -> Upload:
    """Send a folder into a new session and leave it pending: whoever asked commits it, alone or with more."""
    with lake.store.write() as tx:
        session = upload.start(tx, caller, made_by)
    send(lake, caller, session.id, scan(source, target))
    return session


def send(lake: Lake, caller: Caller, upload_id: UploadId, files: list[LocalFile]) -> None:
    by_digest: dict[Digest, LocalFile] = {}
    items = []
    for file in files:
        digest = digest_file(file.local)
        by_digest.setdefault(digest, file)
        items.append(UploadItem(file.path, file.size, digest))
    missing: list[Digest] = []
    for start in range(0, len(items), upload.MAX_FILES):
        some = items[start : start + upload.MAX_FILES]
        damaged = upload.damaged_of(lake, caller, some)
        with lake.store.write() as tx:
            missing += upload.add_files(tx, caller, upload_id, some, damaged)
    read = _FileReader(by_digest)
    for incoming in plan(read, dict.fromkeys(missing)):
        (transfer,) = upload.announce(lake, caller, upload_id, [incoming])
        _put_parts(lake, transfer, read)
        upload.finish_object(lake, caller, upload_id, incoming.digest)


def ingest_carried(lake: Lake, caller: Caller, contents: Mapping[str, bytes]) -> Upload:
    """Send small files, by path, into a new session as one pack and leave it pending, as `ingest_folder` does."""
    if (
        any(len(data) >= SMALL for data in contents.values())
        or sum(map(len, contents.values())) > MAX_CARRIED
    ):
        raise TooLarge(
            "files that go along with a request have less than 256 kB each, 1 MB in all: upload them"
        )
    by_digest = {digest_of(data): data for data in contents.values()}
    items = [UploadItem(path, len(data), digest_of(data)) for path, data in contents.items()]
    damaged = upload.damaged_of(lake, caller, items)
    with lake.store.write() as tx:
        session = upload.start(tx, caller)
        missing = upload.add_files(tx, caller, session.id, items, damaged)
    if not missing:
        return session
    data = b"".join(by_digest[digest] for digest in missing)
    (members,) = plan_packs([(digest, len(by_digest[digest])) for digest in missing])
    try:
        incoming = Incoming(digest_of(data), len(data), members)
        (transfer,) = upload.announce(lake, caller, session.id, [incoming])
        stage = transfer.stage
        for number in transfer.missing:
            start = (number - 1) * stage.part_size
            lake.blobs.put_part(stage, number, [data[start : start + stage.part_length(number)]])
        upload.finish_object(lake, caller, session.id, incoming.digest)
    except EaselError:
        upload.abort(lake, caller, session.id)
        raise
    return session


class _FileReader:
    def __init__(self, by_digest: dict[Digest, LocalFile]) -> None:
        self._files = by_digest

    def size(self, digest: Digest) -> int:
        return self._files[digest].size

    def blob(self, digest: Digest) -> Iterator[bytes]:
        with self._files[digest].local.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def object(self, incoming: Incoming) -> Iterator[bytes]:
        for digest in [m.digest for m in incoming.members] or [incoming.digest]:
            yield from self.blob(digest)

    def range(self, incoming: Incoming, offset: int, length: int) -> Iterator[bytes]:
        with self._files[incoming.digest].local.open("rb") as file:
            file.seek(offset)
            while length > 0 and (chunk := file.read(min(_CHUNK, length))):
                length -= len(chunk)
                yield chunk


def plan(read: _FileReader, missing: dict[Digest, None]) -> Iterator[Incoming]:
    small = [(d, read.size(d)) for d in missing if read.size(d) < SMALL]
    for members in plan_packs(small):
        pack = Incoming(Digest(b""), sum(m.size for m in members), members)
        yield Incoming(digest_chunks(read.object(pack)), pack.size, members)
    for digest in missing:
        if read.size(digest) >= SMALL:
            yield Incoming(digest, read.size(digest))


def _put_parts(lake: Lake, transfer: AnnouncedObject, read: _FileReader) -> None:
    stage = transfer.stage
    for number in transfer.missing:
        length = stage.part_length(number)
        if transfer.incoming.members:
            chunks = read.object(transfer.incoming)
        else:
            chunks = read.range(transfer.incoming, (number - 1) * stage.part_size, length)
        lake.blobs.put_part(stage, number, chunks)

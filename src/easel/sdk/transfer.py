"""Bytes to and from the lake: hashed, packed where small, sent and fetched in parallel, checked on arrival."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from easel.errors import Conflict, EaselError, InvalidInput
from easel.lake.blobs.packs import PACK, SMALL, plan_packs
from easel.lake.digest import Corrupt, Digest, digest_file, digest_of, from_hex, verified
from easel.lake.folder import LocalFile
from easel.sdk.handover import Handover, in_memory, is_here, opened
from easel.wire import lake as wire

if TYPE_CHECKING:
    from easel.lake.blobs.store import PackMember
    from easel.sdk.connection import Connection
    from easel.sdk.direct import Direct

Progress = Callable[[int], None]
"""Called with the number of bytes that were dealt with since the last call."""

_CHUNK = 1 << 20
_REQUEST = 1_000_000  # bytes of JSON in one call, below what servers accept


Naming = Callable[[LocalFile, Digest], str]
"""The path that a file of this content gets in the lake."""


def own_path(file: LocalFile, digest: Digest) -> str:
    """Returns the path that it was listed with, whatever it holds."""
    return file.path


class Sender:
    """Sends the files of one session. Repeating it sends only what is missing.

    Files go in batches, each of which is hashed, announced, packed and sent by one thread: while the server writes the
    rows and checks the bytes of one batch, the next is read and hashed here.
    """

    def __init__(
        self,
        connection: Connection,
        root: str,
        direct: Direct,
        progress: Progress,
        threads: int,
        name: Naming = own_path,
    ) -> None:
        self._connection, self._root, self._direct = connection, root, direct
        self._progress, self._threads, self._name = progress, threads, name
        self._claimed: set[Digest] = set()
        self._lock = threading.Lock()

    def send(self, upload_id: str, files: Sequence[LocalFile]) -> None:
        path = f"{self._root}/uploads/{upload_id}"
        with ThreadPoolExecutor(self._threads) as pool:
            small = pool.map(lambda batch: self._batch(path, batch), _batches(files))
            for large in small:
                for digest, file in large.items():
                    self._large(path, digest, file, pool)

    def _batch(self, path: str, files: Sequence[LocalFile]) -> dict[Digest, LocalFile]:
        """Send the small files of a batch; returns the large ones whose bytes are wanted."""
        contents: dict[Digest, bytes] = {}
        by_digest: dict[Digest, LocalFile] = {}
        digests = []
        for file in files:
            if file.size < SMALL:
                content = _content(file)
                digest = digest_of(content)
                contents[digest] = content
            else:
                digest = digest_file(file.local)
            digests.append(digest)
            by_digest.setdefault(digest, file)
        # Named by content, two files may be one: it is announced once.
        named = {
            self._name(file, digest): (file, digest) for file, digest in zip(files, digests, strict=True)
        }
        body = wire.AddFiles(
            files=[
                wire.NewFile(path=path, size=file.size, hash=digest.hex())
                for path, (file, digest) in named.items()
            ]
        )
        answer = self._connection.post(f"{path}/files", body, wire.WantedHashes)
        wanted = self._claim(from_hex(text) for text in answer.wanted)
        self._progress(sum(file.size for digest, file in by_digest.items() if digest not in wanted))
        for members in plan_packs((d, len(contents[d])) for d in wanted if d in contents):
            self._pack(path, members, contents)
        return {digest: by_digest[digest] for digest in wanted if digest not in contents}

    def _claim(self, wanted: Iterable[Digest]) -> dict[Digest, None]:
        """Returns the files that no other batch is sending; equal files lie in many folders."""
        with self._lock:
            ours = dict.fromkeys(digest for digest in wanted if digest not in self._claimed)
            self._claimed.update(ours)
        return ours

    def _pack(self, path: str, members: Sequence[PackMember], contents: Mapping[Digest, bytes]) -> None:
        data = b"".join([contents[member.digest] for member in members])
        new = wire.NewObject(
            hash=digest_of(data).hex(),
            size=len(data),
            members=[wire.PackMember(hash=m.digest.hex(), size=m.size) for m in members],
        )
        parts, handover = self._announce(path, new)
        for part in parts:
            if not (handover and _handed_in_memory(handover, part, data)):
                piece = data[part.offset : part.offset + part.size]
                self._direct.put(part.url, part.size, partial(_pieces, piece))
        self._finish(path, new.hash)
        self._progress(len(data))

    def _large(self, path: str, digest: Digest, file: LocalFile, pool: ThreadPoolExecutor) -> None:
        parts, handover = self._announce(path, wire.NewObject(hash=digest.hex(), size=file.size, members=[]))
        self._progress(file.size - sum(part.size for part in parts))

        def put(part: wire.Part) -> None:
            if not (handover and _handed(handover, part, file.local)):
                self._direct.put(part.url, part.size, lambda: _slice(file.local, part.offset, part.size))
            self._progress(part.size)

        try:
            list(pool.map(put, parts))
            self._finish(path, digest.hex())
        except (EaselError, OSError):
            if digest_file(file.local) != digest:
                raise _changed(file) from None
            raise

    def _announce(self, path: str, new: wire.NewObject) -> tuple[Sequence[wire.Part], Handover | None]:
        """The parts to send, and the quicker way where the server is on this machine."""
        answer = self._connection.post(f"{path}/objects", wire.Announce(objects=[new]), wire.Transfers)
        near = answer.handover and is_here(self._connection.server)
        return answer.transfers[0].parts, Handover(answer.handover) if near else None

    def _finish(self, path: str, digest: str) -> None:
        self._connection.request("POST", f"{path}/objects/{digest}/finish")


def _handed(handover: Handover, part: wire.Part, path: Path) -> bool:
    with opened(path) as descriptor:
        return handover.put(part.url, descriptor, part.offset, part.size)


def _handed_in_memory(handover: Handover, part: wire.Part, data: bytes) -> bool:
    if not hasattr(os, "memfd_create"):
        return False
    with in_memory(data) as descriptor:
        return handover.put(part.url, descriptor, part.offset, part.size)


class Receiver:
    """Writes files below a folder, each checked before it gets its name."""

    def __init__(self, direct: Direct, progress: Progress, threads: int) -> None:
        self._direct, self._progress, self._threads = direct, progress, threads

    def receive(self, page: wire.Fetched, place: Callable[[str], Path]) -> None:
        """Fetch what is not there yet; a file that broke off is continued where it ended."""
        targets: dict[str, list[Path]] = {}
        for file in page.files:
            targets.setdefault(file.hash or "", []).append(place(file.path))
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda span: self._range(span, targets), page.ranges))

    def _range(self, span: wire.Range, targets: dict[str, list[Path]]) -> None:
        if all(_is_here(path, blob) for blob in span.blobs for path in targets[blob.hash]):
            self._progress(sum(blob.size for blob in span.blobs))
            return
        if len(span.blobs) == 1:
            self._continue(span, targets[span.blobs[0].hash])
            self._progress(span.length)
            return
        data = b"".join(self._direct.get(span.url, span.start, span.length))
        for blob in span.blobs:
            content = data[blob.offset : blob.offset + blob.size]
            first, *others = targets[blob.hash]
            growing = _partial(first, blob.hash)
            growing.write_bytes(b"".join(verified([content], from_hex(blob.hash))))
            _settle(growing, first, others)
            self._progress(blob.size)

    def _continue(self, span: wire.Range, paths: Sequence[Path]) -> None:
        """One file of its own: what an earlier try left is kept, and counts towards the digest like the rest."""
        first, *others = paths
        digest = span.blobs[0].hash
        growing = _partial(first, digest)
        with growing.open("ab") as out:
            if not _is_mine(out):
                raise Conflict(f"another process is fetching {first} just now: wait for it")
            have = os.fstat(out.fileno()).st_size
            if have > span.length:
                out.truncate(have := 0)
            fresh = self._direct.get(span.url, span.start, span.length, arrived=have)
            try:
                for chunk in verified(
                    chain(_slice(growing, 0, have), _written(fresh, out)), from_hex(digest)
                ):
                    del chunk  # it is on disk already; here it is only counted
            except Corrupt:
                growing.unlink(missing_ok=True)  # what lay here was something else: the next try begins anew
                raise
            out.flush()
            _settle(growing, first, others)


def _is_mine(file: IO[bytes]) -> bool:
    """Whether no other process writes to it; the lock goes with the process, however that ends."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_here(path: Path, blob: wire.ObjectRange) -> bool:
    try:
        return path.stat().st_size == blob.size and digest_file(path).hex() == blob.hash
    except OSError:
        return False


def _partial(path: Path, digest: str) -> Path:
    """Where a file grows until it is whole; named by its content, so that another version never continues it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{digest[:32]}.partial")


def _written(chunks: Iterator[bytes], out: IO[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        out.write(chunk)
        yield chunk


def _settle(growing: Path, first: Path, others: Sequence[Path]) -> None:
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(growing, other)
    growing.replace(first)


def _slice(path: Path, offset: int, length: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while length > 0 and (chunk := file.read(min(_CHUNK, length))):
            length -= len(chunk)
            yield chunk


def _content(file: LocalFile) -> bytes:
    """All of a small file; one that changed since it was listed is refused."""
    descriptor = os.open(file.local, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(descriptor, SMALL)
    finally:
        os.close(descriptor)
    if len(content) != file.size:
        raise _changed(file)
    return content


def _changed(file: LocalFile) -> InvalidInput:
    return InvalidInput(f"{file.local} changed while it was uploaded: try again, or name it in .easelignore")


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))


def _batches(files: Sequence[LocalFile]) -> Iterator[list[LocalFile]]:
    """Yields as many files as one request may name; the small ones of a batch fill one pack."""
    batch: list[LocalFile] = []
    request = packed = 0
    for file in files:
        cost, small = len(file.path.encode()) * 2 + 120, file.size if file.size < SMALL else 0
        if batch and (request + cost > _REQUEST or packed + small > PACK):
            yield batch
            batch, request, packed = [], 0, 0
        batch.append(file)
        request, packed = request + cost, packed + small
    if batch:
        yield batch


def no_progress(_count: int) -> None:
    """Shows no progress, for scripts."""

"""Bytes to and from the lake: hashed, packed where small, sent and fetched in parallel, checked on arrival."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx

from easel.errors import EaselError, InvalidInput, TryLater
from easel.lake.blobs.packs import PACK, SMALL, plan_packs
from easel.lake.blobs.store import PackMember
from easel.lake.digest import Digest, digest_file, digest_of, from_hex, verified
from easel.lake.folder import LocalFile
from easel.sdk.connection import Connection, tls_context, to_error
from easel.sdk.handover import Handover, in_memory, is_here, opened
from easel.wire import lake as wire

Progress = Callable[[int], None]
"""Called with the number of bytes that were dealt with since the last call."""

_CHUNK = 1 << 20
_REQUEST = 1_000_000  # bytes of JSON in one call, below what servers accept
_TRIES = 5


Naming = Callable[[LocalFile, Digest], str]
"""The path that a file of this content gets in the lake."""


def own_path(file: LocalFile, digest: Digest) -> str:
    """Returns the path that it was listed with, whatever it holds."""
    return file.path


class Direct:
    """PUT and GET of signed addresses, which may be the server's or the blob store's own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # No token here: a signed address is the permission, and another host must not see it.
        self._plain = httpx.Client(
            timeout=httpx.Timeout(120.0, connect=10.0), base_url=connection.server, verify=tls_context()
        )

    def put(self, url: str, size: int, body: Callable[[], Iterable[bytes]]) -> None:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._persist(lambda: self._plain.put(url, content=body(), headers=headers))

    def get(self, url: str, start: int, length: int) -> Iterator[bytes]:
        """The bytes; a connection that breaks is taken up again where it broke.

        Our own server signs a range and lets any part of it be asked for. A bucket signs the very header, so there the
        whole range is asked for again and what has arrived already is passed over.
        """
        arrived, attempt = 0, 0
        while arrived < length:
            skip = 0 if url.startswith("/") else arrived
            ranged = {"Range": f"bytes={start + arrived - skip}-{start + length - 1}"}
            try:
                with self._plain.stream("GET", url, headers=ranged) as response:
                    if response.status_code >= 500:
                        raise httpx.ReadError(f"answered {response.status_code}")
                    if response.is_error:
                        response.read()
                        raise to_error(response)
                    for chunk in response.iter_raw(_CHUNK):
                        fresh = chunk[skip:]
                        skip -= min(skip, len(chunk))
                        arrived += len(fresh)
                        if fresh:
                            yield fresh
                if arrived < length:
                    raise httpx.ReadError("ended too early")
            except httpx.TransportError as error:
                attempt += 1
                if attempt == _TRIES:
                    raise TryLater(f"the bytes stop coming ({type(error).__name__}): try again") from error
                self._connection.pause(attempt)

    def _persist(self, send: Callable[[], httpx.Response]) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                response = send()
                if response.status_code < 500 or attempt == _TRIES:
                    if response.is_error:
                        raise to_error(response)
                    return
            except httpx.TransportError as error:
                if attempt == _TRIES:
                    raise TryLater(f"no answer ({type(error).__name__}): try again") from error
            self._connection.pause(attempt)

    def close(self) -> None:
        self._plain.close()


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
        except (EaselError, OSError, httpx.HTTPError):
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
        targets: dict[str, list[Path]] = {}
        for file in page.files:
            targets.setdefault(file.hash or "", []).append(place(file.path))
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda span: self._range(span, targets), page.ranges))

    def _range(self, span: wire.Range, targets: dict[str, list[Path]]) -> None:
        chunks = self._direct.get(span.url, span.start, span.length)
        if len(span.blobs) == 1:
            self._write(targets[span.blobs[0].hash], verified(chunks, from_hex(span.blobs[0].hash)))
            self._progress(span.length)
            return
        data = b"".join(chunks)
        for blob in span.blobs:
            content = data[blob.offset : blob.offset + blob.size]
            self._write(targets[blob.hash], verified([content], from_hex(blob.hash)))
            self._progress(blob.size)

    def _write(self, paths: Sequence[Path], chunks: Iterator[bytes]) -> None:
        first, *others = paths
        first.parent.mkdir(parents=True, exist_ok=True)
        partial = first.with_name(f".{first.name}.partial")
        try:
            with partial.open("wb") as out:
                for chunk in chunks:
                    out.write(chunk)
            for other in others:
                other.parent.mkdir(parents=True, exist_ok=True)
                other.write_bytes(partial.read_bytes())
            partial.replace(first)
        except (OSError, EaselError):
            partial.unlink(missing_ok=True)
            raise


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
    return InvalidInput(f"{file.local} changed while it was uploaded: try again")


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

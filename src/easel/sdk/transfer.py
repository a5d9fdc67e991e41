"""Bytes to and from the lake: hashed, packed where small, sent and fetched in parallel, checked on arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from easel.errors import EaselError, InvalidInput, TryLater
from easel.lake.blobs.packs import SMALL, plan_packs
from easel.lake.blobs.store import Member
from easel.lake.digest import Digest, digest_file, digest_of, from_hex, verified
from easel.lake.folder import LocalFile
from easel.sdk.connection import Connection, to_error
from easel.wire import lake as wire

Progress = Callable[[int], None]
"""Called with the number of bytes that were dealt with since the last call."""

_CHUNK = 1 << 20
_REMEMBER = 256 * 2**20  # small files are read once if they fit, else once to hash and once to send
_REQUEST = 1_000_000  # bytes of JSON in one call, below what servers accept
_TRIES = 5


class Direct:
    """PUT and GET of signed addresses, which may be the server's or the blob store's own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # No token here: a signed address is the permission, and another host must not see it.
        self._plain = httpx.Client(timeout=httpx.Timeout(120.0, connect=10.0), base_url=connection.server)

    def put(self, url: str, size: int, body: Callable[[], Iterable[bytes]]) -> None:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._persist(lambda: self._plain.put(url, content=body(), headers=headers))

    def get(self, url: str, start: int, length: int) -> Iterator[bytes]:
        """The bytes; a connection that breaks is taken up again where it broke."""
        if length == 0:
            return
        position, tries = start, _TRIES
        while position < start + length:
            tries -= 1
            # A signature of the blob store covers the whole range: then there is no asking for the rest.
            ranged = {"Range": f"bytes={position}-{start + length - 1}"}
            try:
                with self._plain.stream("GET", url, headers=ranged) as response:
                    if response.is_error:
                        response.read()
                        raise to_error(response)
                    for chunk in response.iter_raw(_CHUNK):
                        position += len(chunk)
                        yield chunk
            except httpx.TransportError as error:
                if tries == 0:
                    raise TryLater(f"the bytes stop coming ({type(error).__name__}): try again") from error

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
    """Sends the files of one session. Repeating it sends only what is missing."""

    def __init__(
        self, connection: Connection, root: str, direct: Direct, progress: Progress, threads: int
    ) -> None:
        self._connection, self._root, self._direct = connection, root, direct
        self._progress, self._threads = progress, threads
        self._files: dict[Digest, LocalFile] = {}
        self._content: dict[Digest, bytes] = {}
        self._remembered = 0

    def send(self, upload_id: str, files: Sequence[LocalFile]) -> None:
        path = f"{self._root}/uploads/{upload_id}"
        with ThreadPoolExecutor(self._threads) as pool:
            digests = list(pool.map(self._hash, files))
            wanted: dict[Digest, None] = {}
            for batch in _batches(list(zip(files, digests, strict=True))):
                body = wire.AddFiles(
                    files=[wire.NewFile(path=f.path, size=f.size, hash=d.hex()) for f, d in batch]
                )
                answer = self._connection.post(f"{path}/files", body, wire.WantedHashes)
                wanted.update((Digest(from_hex(text)), None) for text in answer.wanted)
            self._progress(sum(f.size for d, f in self._files.items() if d not in wanted))
            small = [(d, self._files[d].size) for d in wanted if self._files[d].size < SMALL]
            large = [d for d in wanted if self._files[d].size >= SMALL]
            jobs = [pool.submit(self._pack, path, members) for members in plan_packs(small)]
            for digest in large:
                self._large(path, digest, pool)
            for job in jobs:
                job.result()

    def _hash(self, file: LocalFile) -> Digest:
        if file.size < SMALL:
            content = file.local.read_bytes()
            digest = digest_of(content)
            if self._remembered + len(content) <= _REMEMBER:
                self._remembered += len(content)
                self._content[digest] = content
        else:
            digest = digest_file(file.local)
        self._files.setdefault(digest, file)
        return digest

    def _read(self, digest: Digest) -> bytes:
        content = self._content.pop(digest, None)
        if content is None:
            content = self._files[digest].local.read_bytes()
            if digest_of(content) != digest:
                raise InvalidInput(f"{self._files[digest].local} changed while it was uploaded: try again")
        return content

    def _pack(self, path: str, members: Sequence[Member]) -> None:
        data = b"".join(self._read(member.digest) for member in members)
        new = wire.NewObject(
            hash=digest_of(data).hex(),
            size=len(data),
            members=[wire.PackMember(hash=m.digest.hex(), size=m.size) for m in members],
        )
        for part in self._announce(path, new):
            piece = data[part.offset : part.offset + part.size]
            self._direct.put(part.url, part.size, lambda piece=piece: [piece])  # type: ignore[misc]
        self._finish(path, new.hash)
        self._progress(len(data))

    def _large(self, path: str, digest: Digest, pool: ThreadPoolExecutor) -> None:
        file = self._files[digest]
        parts = self._announce(path, wire.NewObject(hash=digest.hex(), size=file.size, members=[]))
        self._progress(file.size - sum(part.size for part in parts))

        def put(part: wire.Part) -> None:
            self._direct.put(part.url, part.size, lambda: _slice(file.local, part.offset, part.size))
            self._progress(part.size)

        list(pool.map(put, parts))
        self._finish(path, digest.hex())

    def _announce(self, path: str, new: wire.NewObject) -> Sequence[wire.Part]:
        answer = self._connection.post(f"{path}/objects", wire.Announce(objects=[new]), wire.Transfers)
        return answer.transfers[0].parts

    def _finish(self, path: str, digest: str) -> None:
        self._connection.request("POST", f"{path}/objects/{digest}/finish")


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


def _batches(pairs: list[tuple[LocalFile, Digest]]) -> Iterator[list[tuple[LocalFile, Digest]]]:
    batch: list[tuple[LocalFile, Digest]] = []
    size = 0
    for pair in pairs:
        cost = len(pair[0].path.encode()) * 2 + 120
        if batch and (size + cost > _REQUEST or len(batch) == 5000):
            yield batch
            batch, size = [], 0
        batch.append(pair)
        size += cost
    if batch:
        yield batch


def no_progress(_count: int) -> None:
    """For scripts that show none."""

"""The lake as a worker far away sees it: addresses from the server, bytes from wherever they point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from easel.errors import TryLater
from easel.lake.blobs.store import Incoming, Stage, exactly
from easel.lake.cache import BlobCache
from easel.lake.digest import Digest
from easel.records.job import StoredFile
from easel.run.depots import BlobDepot
from easel.run.entries import Kept
from easel.sdk.connection import Connection
from easel.sdk.plain_http import tls_context
from easel.wire import worker as wire

ROOT = "/api/v1/worker"
ATTEMPTS = 10
"""Tries of each request: together about two minutes, so that an outage of half a minute is waited out."""
_ADDRESSES_AT_ONCE = 5_000
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Link:
    """How to reach the server."""

    server: str
    token: str = field(repr=False)

    def connect(self, attempts: int = ATTEMPTS) -> Connection:
        return Connection(self.server, self.token, attempts=attempts)


class RemoteDepot:
    def __init__(self, link: Link, cache: BlobCache) -> None:
        self._link, self._cache = link, cache

    def fetch(self, files: Sequence[StoredFile], folder: Path, key: str, *, read_only: bool) -> None:
        blobs = _AttemptBlobs(self._link, key)
        try:
            blobs.expect([file for file in files if not self._holds(file)])
            BlobDepot(blobs, self._cache).fetch(files, folder, key, read_only=read_only)
        finally:
            blobs.close()

    def _holds(self, file: StoredFile) -> bool:
        return self._cache.holds(Digest(bytes.fromhex(file.digest)), file.size)

    def keep(self, folder: Path, key: str, extra: Mapping[str, bytes] | None = None) -> Kept:
        blobs = _AttemptBlobs(self._link, key)
        try:
            return BlobDepot(blobs, self._cache).keep(folder, key, extra)
        finally:
            blobs.close()


class _AttemptBlobs:
    """The blob store as one attempt may use it: read its files, put its outputs. Connects when first needed."""

    def __init__(self, link: Link, key: str) -> None:
        self._link, self._key = link, key
        self._connection: Connection | None = None
        self._bytes: httpx.Client | None = None
        self._addresses: dict[tuple[str, int, int], str] = {}
        self._stages: dict[str, wire.OpenedStage] = {}

    def _server(self) -> Connection:
        if self._connection is None:
            self._connection = self._link.connect()
        return self._connection

    @property
    def _root(self) -> str:
        return f"{ROOT}/attempts/{self._key}"

    def close(self) -> None:
        for client in (self._connection, self._bytes):
            if client is not None:
                client.close()

    # Reading. -------------------------------------------------------------------------------------------------

    def expect(self, files: Sequence[StoredFile]) -> None:
        """Ask for the addresses of all of them at once."""
        wanted = list(dict.fromkeys((file.object, file.offset, file.size) for file in files if file.object))
        for start in range(0, len(wanted), _ADDRESSES_AT_ONCE):
            some = wanted[start : start + _ADDRESSES_AT_ONCE]
            items = [wire.ObjectSource(object=name, offset=offset, size=size) for name, offset, size in some]
            body = wire.ObjectSources(items=items)
            found = self._server().post(f"{self._root}/sources", body, wire.ObjectAddresses).items
            self._addresses |= dict(zip(some, found, strict=True))

    def read(self, digest: Digest, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Resumes where a connection broke off."""
        assert length is not None, "files are read by their size"
        at, end, failures = offset, offset + length, 0
        while at < end:
            try:
                for chunk in self._range(digest, offset, length, at, end):
                    at += len(chunk)
                    failures = 0
                    yield chunk
            except (httpx.TransportError, TryLater) as error:
                failures += 1
                if failures >= ATTEMPTS:
                    raise TryLater(f"the bytes of {digest.hex()} cannot be fetched: {error}") from error
                self._server().pause(failures)
                self._addresses.pop((digest.hex(), offset, length), None)  # it may have become too old

    def _range(self, digest: Digest, offset: int, length: int, at: int, end: int) -> Iterator[bytes]:
        place = (digest.hex(), offset, length)
        if place not in self._addresses:
            self.expect([StoredFile("", digest.hex(), length, digest.hex(), offset)])
        address = self._addresses[place]
        headers = {"Range": f"bytes={at}-{end - 1}"}
        if at != offset and not address.startswith("/"):
            # A bucket's address is signed for the whole range only: skip what we have.
            headers = {"Range": f"bytes={offset}-{end - 1}"}
        with self._http().stream("GET", self._absolute(address), headers=headers) as response:
            if response.status_code >= 400:
                raise TryLater(f"the store answered {response.status_code}")
            skip = at - offset if headers["Range"].startswith(f"bytes={offset}-") else 0
            for chunk in response.iter_bytes(_CHUNK):
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                yield chunk[skip:]
                skip = 0

    # Writing. -------------------------------------------------------------------------------------------------

    def begin(self, stage_id: str, size: int) -> Stage:
        body = wire.OpenStage(id=stage_id, size=size)
        opened = self._server().post(f"{self._root}/stages", body, wire.OpenedStage)
        self._stages[opened.id] = opened
        return Stage(opened.id, opened.size, opened.part_size, opened.handle)

    def put_part(self, stage: Stage, number: int, chunks: Iterable[bytes]) -> None:
        data = b"".join(exactly(chunks, stage.part_length(number)))
        address = self._stages[stage.id].addresses[number - 1]
        if address.startswith("/"):
            self._server().request("PUT", address, content=data)
            return
        for failures in range(1, ATTEMPTS + 1):
            try:
                response = self._http().put(address, content=data)
                if response.status_code < 400:
                    return
                problem: object = response.status_code
            except httpx.TransportError as error:
                problem = error
            self._server().pause(failures)
        raise TryLater(f"part {number} of an output cannot be stored: {problem}")

    def check(self, stage: Stage, incoming: Incoming) -> None:
        """The server checks when it is asked to promote: it has the bytes, we have the names."""
        self._incoming = incoming

    def promote(self, stage: Stage, digest: Digest) -> None:
        members = [
            wire.WirePackMember(digest=each.digest.hex(), offset=each.offset, size=each.size)
            for each in self._incoming.members
        ]
        about = wire.WireStage(id=stage.id, size=stage.size, part_size=stage.part_size, handle=stage.handle)
        body = wire.FinishStage(stage=about, digest=digest.hex(), size=self._incoming.size, members=members)
        self._server().post(f"{self._root}/finish", body, wire.Done)

    def _http(self) -> httpx.Client:
        """Returns a client without our token: a bucket's address carries its own permission."""
        if self._bytes is None:
            self._bytes = httpx.Client(timeout=httpx.Timeout(60.0, connect=5.0), verify=tls_context())
        return self._bytes

    def _absolute(self, address: str) -> str:
        return address if not address.startswith("/") else self._link.server.rstrip("/") + address

"""The lake's blob store as a depot: small outputs travel in the report, the rest is put here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from easel.clock import Clock, SystemClock
from easel.errors import TryLater
from easel.lake.blobs.address import open_blobs
from easel.lake.blobs.packs import SMALL, plan_packs
from easel.lake.blobs.store import Incoming, Puts, put
from easel.lake.cache import BlobCache
from easel.lake.digest import Digest, digest_file, digest_of, from_hex
from easel.lake.manifest.node import Entry
from easel.lake.materialise import Mode, materialise
from easel.records.job import StoredFile
from easel.run.depot import Depot, outputs
from easel.run.entries import Kept

Result = TypeVar("Result")
TOKEN = "EASEL_TOKEN"  # noqa: S105 - the name of the variable
INLINE_BYTES = 64 * 1024
INLINE_FILES = 32
_CHUNK = 1 << 20
PATIENCE_S = 300.0
"""How long a job that is done waits for a bucket that is away, rather than lose what it made."""


class Bytes(Puts, Protocol):
    """The part of a blob store that an attempt needs."""

    def read(self, digest: Digest, offset: int = 0, length: int | None = None) -> Iterator[bytes]: ...


class BlobDepot:
    def __init__(self, blobs: Bytes, cache: BlobCache) -> None:
        self._blobs, self._cache = blobs, cache

    def fetch(self, files: Sequence[StoredFile], folder: Path, key: str, *, read_only: bool) -> None:
        if not files:
            folder.mkdir(parents=True, exist_ok=True)
            return
        places = {from_hex(file.digest): file for file in files}

        def read(digest: bytes, size: int) -> Iterator[bytes]:
            file = places[from_hex(digest.hex())]
            return self._blobs.read(from_hex(file.object), file.offset, size)

        entries = [Entry(file.path, 0, 0, file.size, from_hex(file.digest)) for file in files]
        mode = Mode.SHARE if read_only else Mode.OWN
        materialise(entries, folder, read, cache=self._cache, mode=mode)

    def keep(self, folder: Path, key: str, extra: Mapping[str, bytes] | None = None) -> Kept:
        for name, data in (extra or {}).items():
            if folder.exists():
                (folder / name.lstrip("/")).write_bytes(data)
        found = list(outputs(folder)) if folder.exists() else []
        if not found:
            return _in_report({} if folder.exists() else extra or {})
        sizes = [path.stat().st_size for _, path in found]
        if len(found) <= INLINE_FILES and sum(sizes) <= INLINE_BYTES:
            return _in_report({name: path.read_bytes() for name, path in found})
        digests = [digest_file(path) for _, path in found]
        where: dict[bytes, tuple[str, int]] = {}
        by_digest = {
            digest: (path, size) for digest, (_, path), size in zip(digests, found, sizes, strict=True)
        }
        small = [(digest, size) for digest, (_, size) in by_digest.items() if size < SMALL]
        stage = key.lower().replace(".", "-")
        for number, members in enumerate(plan_packs(small)):
            data = b"".join(by_digest[member.digest][0].read_bytes() for member in members)
            pack = put(self._blobs, f"{stage}-pack-{number}", data, members)
            where |= {member.digest: (pack.hex(), member.offset) for member in members}
        for number, (digest, (path, size)) in enumerate(by_digest.items()):
            if size >= SMALL:
                self._put_whole(f"{stage}-file-{number}", path, Incoming(digest, size))
                where[digest] = (digest.hex(), 0)
        return Kept(
            [
                StoredFile(name, digest.hex(), size, *where[digest])
                for (name, _), digest, size in zip(found, digests, sizes, strict=True)
            ]
        )

    def _put_whole(self, stage_id: str, path: Path, incoming: Incoming) -> None:
        stage = self._blobs.begin(stage_id, incoming.size)
        with path.open("rb") as file:
            for number in range(1, stage.part_count + 1):
                length = stage.part_length(number)
                full, rest = divmod(length, _CHUNK)
                sizes = [_CHUNK] * full + ([rest] if rest else [])
                self._blobs.put_part(stage, number, map(file.read, sizes))
        self._blobs.check(stage, incoming)
        self._blobs.promote(stage, incoming.digest)


class PatientDepot:
    """Waits while the store behind `depot` is away. Asking again is safe: bytes are named by their digests."""

    def __init__(self, depot: Depot, clock: Clock, patience_s: float = PATIENCE_S) -> None:
        self._depot, self._clock, self._patience_s = depot, clock, patience_s

    def fetch(self, files: Sequence[StoredFile], folder: Path, key: str, *, read_only: bool) -> None:
        self._patiently(lambda: self._depot.fetch(files, folder, key, read_only=read_only))

    def keep(self, folder: Path, key: str, extra: Mapping[str, bytes] | None = None) -> Kept:
        return self._patiently(lambda: self._depot.keep(folder, key, extra))

    def _patiently(self, act: Callable[[], Result]) -> Result:
        until, pause = self._clock.monotonic() + self._patience_s, 0.5
        while True:
            try:
                return act()
            except TryLater:
                if self._clock.monotonic() + pause > until:
                    raise
            self._clock.sleep(pause)
            pause = min(5.0, pause * 2)


def _in_report(contents: Mapping[str, bytes]) -> Kept:
    named = {name: digest_of(data).hex() for name, data in contents.items()}
    files = [StoredFile(name, named[name], len(data)) for name, data in contents.items()]
    return Kept(files, {named[name]: data for name, data in contents.items()})


def open_depot(address: str, cache: Path, environment: Mapping[str, str] = os.environ) -> Depot:
    """`address` says where the bytes are: as in `lake.blobs.address`, or a server that gives addresses.

    `cache` is the folder that jobs share.
    """
    if address.startswith(("http:", "https:")):
        from easel.run.remote.depot import (
            Link,
            RemoteDepot,
        )  # only where it is used: it stands on this module

        return RemoteDepot(Link(address, environment[TOKEN]), BlobCache(cache))
    depot = BlobDepot(open_blobs(address), BlobCache(cache))
    return PatientDepot(depot, SystemClock()) if address.startswith("s3:") else depot

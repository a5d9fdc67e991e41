"""A file set becomes a folder: by reflink, by hard link where reading is enough, else by copy."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from easel.errors import Conflict, InvalidInput
from easel.lake.cache import BlobCache
from easel.lake.digest import Digest, verified
from easel.lake.manifest.node import Entry
from easel.lake.paths import file_path

_FICLONE = 0x40049409
_CANNOT_LINK = {errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP}
_CANNOT_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}

Fetch = Callable[[Digest, int], Iterator[bytes]]
"""Reads a blob by its digest and size."""


class Mode(StrEnum):
    """How files are put in place.

    `share`: reflink, else hard link to the cache: the fastest; files are read-only.
    `own`: reflink, else copy: the files are the job's to change.
    """

    SHARE = "share"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Materialised:
    files: int
    bytes: int
    fetched: int
    """Bytes that had to be fetched because the cache did not hold them."""


def materialise(
    entries: Iterable[Entry],
    target: Path,
    fetch: Fetch,
    *,
    cache: BlobCache | None = None,
    mode: Mode = Mode.SHARE,
    threads: int = 4,
) -> Materialised:
    """Write every entry below `target` under its path, which must be empty or absent before.

    A folder appears whole or not at all: it grows beside its place and is renamed at the end.
    """
    if target.exists() and any(target.iterdir()):
        raise InvalidInput(f"{target} is not empty: choose an empty or new folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    growing = target.with_name(f".{target.name}.growing")
    shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir()
    try:
        done = _fill(growing, entries, fetch, cache, mode, threads)
        if target.exists():
            target.rmdir()
        growing.rename(target)
    except BaseException:
        shutil.rmtree(growing, ignore_errors=True)
        raise
    return done


def _fill(
    root: Path, entries: Iterable[Entry], fetch: Fetch, cache: BlobCache | None, mode: Mode, threads: int
) -> Materialised:
    put = _Putter(mode)
    made: set[Path] = set()

    def place(entry: Entry) -> tuple[int, int]:
        path = root / file_path(entry.path)[1:]
        try:
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            if cache is None:
                _write(path, verified(fetch(entry.digest, entry.size), entry.digest))
                return entry.size, entry.size
            fetched = 0 if cache.holds(entry.digest, entry.size) else entry.size
            put(cache.path(entry.digest, entry.size, lambda: fetch(entry.digest, entry.size)), path)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise Conflict(
                f"{entry.path} is a file and a folder in this set: leave one of them out"
            ) from error
        return entry.size, fetched

    files = size = fetched = 0
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(entries, 1000):
            for one, two in pool.map(place, batch):
                files, size, fetched = files + 1, size + one, fetched + two
    return Materialised(files, size, fetched)


def _batches(entries: Iterable[Entry], length: int) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    for entry in entries:
        batch.append(entry)
        if len(batch) == length:
            yield batch
            batch = []
    yield batch


class _Putter:
    """Puts a cached file in place, and remembers once the disk turned out to have no reflinks."""

    def __init__(self, mode: Mode) -> None:
        self._mode, self._clones = mode, True

    def __call__(self, source: Path, target: Path) -> None:
        if self._clones:
            if _clone(source, target):
                return
            self._clones = False
        if self._mode is Mode.SHARE:
            try:
                os.link(source, target)
                return
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
        with source.open("rb") as old, target.open("xb") as new:
            shutil.copyfileobj(old, new, 1 << 20)


def _clone(source: Path, target: Path) -> bool:
    """Share the blocks until somebody writes: XFS, Btrfs and others can."""
    with source.open("rb") as old, target.open("xb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError as error:
            if error.errno not in _CANNOT_CLONE:
                raise
        else:
            return True
    target.unlink()
    return False


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    with path.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)

"""A folder of whole blobs that the jobs of one machine share. Filled once, read by many, never written to."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from easel.lake.digest import Digest, verified

Open = Callable[[], Iterator[bytes]]

# Every cached file carries this time. A job that writes through a hard link changes it, and is found out.
_SEALED_NS = 1_000_000_000
_DAY_NS = 86_400 * 10**9


class BlobCache:
    """Blobs by digest, checked when they come in. `trim` lets the least recently used go.

    They go beyond `limit` bytes, when nobody used them for `days`, and when the disk has less than `least_free` left.
    """

    def __init__(
        self,
        root: Path,
        limit: int = 50 * 2**30,
        now_ns: Callable[[], int] = time.time_ns,
        *,
        days: float = 30.0,
        least_free: int = 256 * 2**20,
        free: Callable[[Path], int] = lambda root: shutil.disk_usage(root).free,
    ) -> None:
        self._root, self._limit, self._now_ns = root, limit, now_ns
        self._oldest_ns, self._least_free, self._free = int(days * 86_400e9), least_free, free
        root.mkdir(parents=True, exist_ok=True)

    def path(self, digest: Digest, size: int, fetch: Open) -> Path:
        """The file that holds the blob, fetched first where it is not here or was tampered with."""
        path = self._root / digest.hex()[:2] / digest.hex()
        if _sealed(path, size):
            with contextlib.suppress(FileNotFoundError):  # the time of use is ours: many disks keep none
                os.utime(path, ns=(self._now_ns(), _SEALED_NS))
                return path
        path.parent.mkdir(exist_ok=True)
        try:
            return self._fetched(path, digest, fetch)
        except OSError as error:
            # What lies idle here gives way to what a job needs now.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.make_room(
                max(size, self._least_free)
            ):
                raise
            return self._fetched(path, digest, fetch)

    def _fetched(self, path: Path, digest: Digest, fetch: Open) -> Path:
        descriptor, name = tempfile.mkstemp(dir=self._root, prefix="new-")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in verified(fetch(), digest):
                    file.write(chunk)
            temporary.chmod(0o444)
            os.utime(temporary, ns=(self._now_ns(), _SEALED_NS))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def holds(self, digest: Digest, size: int) -> bool:
        return _sealed(self._root / digest.hex()[:2] / digest.hex(), size)

    def trim(self) -> int:
        """Remove the least recently used as far as size, age and the disk demand; returns the bytes freed.

        Links to them stay. What a killed process left half-written goes after a day, by the time of its use: that of
        its change is the seal's, and old, from just before it gets its name.
        """
        now = self._now_ns()
        found = sorted(self._entries())
        excess = sum(size for _, size, _ in found) - self._limit
        short = self._least_free - self._free(self._root)
        freed = 0
        for used, size, entry in found:
            if freed >= max(excess, short) and now - used < self._oldest_ns:
                break
            entry.unlink(missing_ok=True)
            freed += size
        for half in self._root.glob("new-*"):
            with contextlib.suppress(FileNotFoundError):
                if now - half.stat().st_atime_ns > _DAY_NS:
                    half.unlink()
        return freed

    def make_room(self, size: int) -> int:
        """Let so many bytes go, because the disk is full; returns the bytes freed."""
        freed = 0
        for _, each, entry in sorted(self._entries()):
            if freed >= size:
                break
            entry.unlink(missing_ok=True)
            freed += each
        return freed

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """(time of use, size, path) of each."""
        for path in self._root.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):  # another process trims too
                about = path.stat()
                yield about.st_atime_ns, about.st_size, path


def _sealed(path: Path, size: int) -> bool:
    try:
        about = path.stat()
    except FileNotFoundError:
        return False
    return about.st_size == size and about.st_mtime_ns == _SEALED_NS
